import { beforeAll, describe, expect, test } from 'vitest';
import { browse } from '../../kit/oauth-client.ts';
import { firstGeneration, SAID, type SdkClient, secondGeneration } from '../../kit/sdk-clients.ts';
import { AUDIENCE_SCOPE, CLIENT, PASSWORD, ROLE } from './realm.ts';
import { admin, hasKeycloak, makeRealm, openGateway, TRUSTED } from './scene.ts';

/** Signs in as alice, consents if asked to, and calls the tool. `prepare` comes before the browser. */
async function signInAndCall(client: SdkClient, prepare?: () => Promise<void>): Promise<unknown> {
  await client.refuse();
  await prepare?.();
  const fields = { username: 'alice', password: PASSWORD, accept: 'Yes' };
  await client.finish(await browse(client.memory.authorizationUrl, fields));
  return client.call();
}

describe.skipIf(!hasKeycloak)('sign-in of the official clients with Keycloak', () => {
  let issuer: string;
  beforeAll(async () => {
    issuer = await makeRealm('flow');
    await admin.addDefaultScope('flow', AUDIENCE_SCOPE, ROLE);
    await admin.setRegistrationPolicy('flow', 'trusted-hosts', TRUSTED);
  });

  test('the v1 client signs in through the gateway with Keycloak', async () => {
    await using gateway = await openGateway(issuer);
    expect(await signInAndCall(firstGeneration(`${gateway.url}/mcp`))).toEqual(SAID);
  });

  test('the v1 client signs in with a fixed clientId, without registration at Keycloak', async () => {
    await using gateway = await openGateway(await makeRealm('fixed'), { clientId: CLIENT });
    expect(await signInAndCall(firstGeneration(`${gateway.url}/mcp`))).toEqual(SAID);
  });

  test('the v2 client signs in directly at Keycloak', async () => {
    await using gateway = await openGateway(issuer, { authorizationServer: 'issuer' });
    expect(await signInAndCall(secondGeneration(`${gateway.url}/mcp`))).toEqual(SAID);
  });

  test('the v2 client signs in through the gateway only if Keycloak does not send its issuer', async () => {
    await using gateway = await openGateway(issuer);
    const stopped = secondGeneration(`${gateway.url}/mcp`);
    await expect(signInAndCall(stopped)).rejects.toMatchObject({
      kind: 'authorization_response',
      received: issuer,
    });
    const client = secondGeneration(`${gateway.url}/mcp`);
    const leaveOut = (): Promise<void> =>
      admin.setClientAttributes('flow', client.memory.clientInformation()?.client_id ?? '', {
        'exclude.issuer.from.auth.response': 'true',
      });
    expect(await signInAndCall(client, leaveOut)).toEqual(SAID);
  });
});
