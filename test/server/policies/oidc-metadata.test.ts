import { afterEach, describe, expect, test, vi } from 'vitest';
import { createLog } from '../../../src/core/log.ts';
import {
  type Endpoints,
  Provider,
  type ProviderOptions,
  SignInError,
} from '../../../src/server/policies/oidc/provider.ts';
import { DocumentClient } from '../../../src/server/transport/upstream/document-client.ts';
import { json } from '../../kit/idp.ts';
import { seconds, signingKey, token } from '../../kit/tokens.ts';
import { httpUpstream } from '../../kit/upstream.ts';

const ISSUER = 'https://idp.example';
const METADATA = {
  issuer: ISSUER,
  authorization_endpoint: `${ISSUER}/authorize`,
  token_endpoint: `${ISSUER}/token`,
  jwks_uri: `${ISSUER}/keys`,
};
const ENDPOINTS: Endpoints = {
  authorization: `${ISSUER}/authorize`,
  token: `${ISSUER}/token`,
  keys: undefined,
  auth: 'clientSecretBasic',
  sendsIssuer: false,
  endSession: undefined,
  revocation: undefined,
};

/** A provider whose metadata the test writes, with a clock that it moves. */
function scripted(more: Partial<ProviderOptions> = {}) {
  let now = 5_000_000;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  const state = {
    reads: 0,
    metadata: METADATA as unknown,
    failure: undefined as string | undefined,
    wait(duration: number) {
      now += duration * 1000;
    },
  };
  const sink = { write: () => undefined, dropped: 0, flush: async () => undefined };
  const provider = new Provider({
    issuer: ISSUER,
    clientId: 'web',
    clientSecret: 'secret',
    redirectUri: 'https://app.example/callback',
    scope: 'openid',
    endpoints: undefined,
    client: new DocumentClient(),
    log: createLog(sink, 'debug', 'text'),
    async metadata() {
      state.reads += 1;
      if (state.failure !== undefined) throw new Error(state.failure);
      return { value: state.metadata, lifetime: 60_000 };
    },
    ...more,
  });
  return Object.assign(state, { provider });
}

const failed = (detail: string): object => expect.objectContaining({ code: 'provider_failed', detail });

afterEach(() => vi.restoreAllMocks());

describe('metadata of an OpenID provider', () => {
  test('metadata is read once for concurrent sign-ins, and again when its lifetime is over', async () => {
    const idp = scripted();
    await Promise.all([1, 2, 3].map(() => idp.provider.endpoints()));
    idp.wait(59);
    await idp.provider.endpoints();
    expect(idp.reads).toBe(1);
    idp.metadata = { ...METADATA, token_endpoint: `${ISSUER}/other` };
    idp.wait(1);
    expect(await idp.provider.endpoints()).toMatchObject({ token: `${ISSUER}/other` });
    expect(idp.reads).toBe(2);
  });

  test('metadata that cannot be read is requested again after 5 seconds, and the old one stays in use', async () => {
    const idp = scripted();
    idp.failure = 'down';
    for (let sign = 0; sign < 3; sign += 1)
      await expect(idp.provider.endpoints()).rejects.toEqual(failed('down'));
    expect(idp.reads).toBe(1);
    idp.failure = undefined;
    idp.wait(5);
    const endpoints = await idp.provider.endpoints();
    idp.failure = 'down again';
    idp.wait(60);
    for (let sign = 0; sign < 3; sign += 1) expect(await idp.provider.endpoints()).toBe(endpoints);
    expect(idp.reads).toBe(3);
  });

  test('metadata that has changed is read at the next sign-in', async () => {
    const idp = scripted();
    await idp.provider.endpoints();
    idp.metadata = { ...METADATA, token_endpoint: `${ISSUER}/other` };
    idp.provider.reread();
    expect(await idp.provider.endpoints()).toMatchObject({ token: `${ISSUER}/other` });
  });

  test('metadata is never read if the endpoints are in the configuration', async () => {
    const idp = scripted({ endpoints: ENDPOINTS });
    idp.wait(1e6);
    expect(await idp.provider.endpoints()).toBe(ENDPOINTS);
    idp.provider.reread();
    expect(await idp.provider.endpoints()).toBe(ENDPOINTS);
    expect(idp.reads).toBe(0);
  });

  test.each([null, undefined, [], 'text', 7, {}])('metadata that is %j has no issuer', async (metadata) => {
    const idp = scripted();
    idp.metadata = metadata;
    await expect(idp.provider.endpoints()).rejects.toEqual(
      failed(`its metadata names the issuer undefined, expected ${ISSUER}`),
    );
  });

  test.each([
    [['client_secret_post'], 'clientSecretPost'],
    [['private_key_jwt', 'client_secret_post'], 'clientSecretPost'],
    [['client_secret_post', 'client_secret_basic'], 'clientSecretBasic'],
    [['private_key_jwt'], 'clientSecretBasic'],
    [[], 'clientSecretBasic'],
    ['client_secret_post', 'clientSecretBasic'],
    [null, 'clientSecretBasic'],
    [{ client_secret_post: true }, 'clientSecretBasic'],
  ])('with the authentication methods %j, the client uses %s', async (methods, expected) => {
    const idp = scripted();
    idp.metadata = { ...METADATA, token_endpoint_auth_methods_supported: methods };
    expect(await idp.provider.endpoints()).toMatchObject({ auth: expected });
  });

  test.each([null, 'javascript:alert(1)', ['https://a.example/'], { href: 'https://a.example/' }])(
    'without an end_session_endpoint and a revocation_endpoint, but %j, there is none',
    async (url) => {
      const idp = scripted();
      idp.metadata = { ...METADATA, end_session_endpoint: url, revocation_endpoint: url };
      expect(await idp.provider.endpoints()).toMatchObject({ endSession: undefined, revocation: undefined });
      await idp.provider.revoke('refresh-1');
    },
  );
});

describe('renewed tokens of an OpenID provider', () => {
  const key = signingKey('k');
  const idToken = token(key, { iss: ISSUER, aud: 'web', sub: 'ann', iat: seconds(), exp: seconds(600) });

  /** What a renewal gives if the token endpoint answers with these members. */
  async function renewed(members: object): Promise<unknown> {
    await using server = await httpUpstream((_, response) =>
      json(response, 200, { access_token: 'a', token_type: 'Bearer', ...members }),
    );
    const client = new DocumentClient();
    const endpoints = { ...ENDPOINTS, token: `http://${server.address}/token` };
    try {
      return await scripted({ client, endpoints }).provider.refresh('refresh-1');
    } finally {
      await client.close();
    }
  }

  test('a renewal gives the new refresh token, or the old one if there is no other', async () => {
    expect(await renewed({ id_token: idToken, refresh_token: 'refresh-2' })).toEqual({
      idToken,
      refreshToken: 'refresh-2',
    });
    expect(await renewed({ id_token: idToken })).toEqual({ idToken, refreshToken: 'refresh-1' });
  });

  test('a renewal without an ID token is refused', async () => {
    await expect(renewed({ refresh_token: 'refresh-2' })).rejects.toEqual(
      new SignInError('the provider has sent no ID token'),
    );
  });
});
