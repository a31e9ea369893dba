import { describe, expect, test, vi } from 'vitest';
import type { TestGateway } from '../../../kit/gateway.ts';
import { browse } from '../../../kit/oauth-client.ts';
import {
  ACCESS_TOKEN_LIFETIME,
  type OidcProvider,
  type OidcProviderOptions,
  startOidcProvider,
} from '../../../kit/oidc-provider.ts';
import { firstGeneration, SAID, type SdkClient, secondGeneration } from '../../../kit/sdk-clients.ts';
import { specifiedGateway } from '../../../kit/sign-in.ts';
import { verifies } from '../../../kit/verifies.ts';

interface Scene extends AsyncDisposable {
  readonly idp: OidcProvider;
  readonly front: TestGateway;
  readonly url: string;
}

/** A real provider, and a gateway that requires the write scope and the subject alice. */
async function scene(options: OidcProviderOptions, authentication: object = {}): Promise<Scene> {
  const idp = await startOidcProvider(options);
  const authorization = { rules: ['"write" in jwt.scope.split(" ") && jwt.sub == "alice"'] };
  const scopes = ['read', 'write'];
  const front = await specifiedGateway(idp.issuer, { authentication, scopes, policies: { authorization } });
  return {
    idp,
    front,
    url: `${front.url}/mcp`,
    [Symbol.asyncDispose]: async () => {
      await front.close();
      await idp[Symbol.asyncDispose]();
    },
  };
}

/** Runs the sign-in up to the browser; returns the parameters of its redirect. */
async function upToCode(client: SdkClient): Promise<URLSearchParams> {
  await client.refuse();
  return browse(client.memory.authorizationUrl);
}

/** The first requests that the gateway received. */
async function requestsAt({ front }: Scene, count: number): Promise<string[]> {
  const lines = [];
  for (let line = 1; line <= count; line += 1) lines.push(await front.accessLine(line));
  return lines.map((line) => `${line['http.method']} ${line['http.path']} ${line['http.status']}`);
}

describe('the official MCP client v1', () => {
  verifies(
    ['gateway.auth.idp.client', 'gateway.idp.token'],
    'the v1 client discovers the provider, registers and calls a tool in the default mode',
    async () => {
      await using stage = await scene({});
      const client = firstGeneration(stage.url);
      const { memory } = client;
      const returned = await upToCode(client);
      expect(memory.authorizationUrl?.searchParams.get('code_challenge_method')).toBe('S256');
      expect(memory.authorizationUrl?.searchParams.get('scope')).toContain('read write');
      await client.finish(returned);
      expect(await client.call()).toEqual(SAID);
      const authorizationServer = '/.well-known/oauth-authorization-server/mcp';
      expect(await requestsAt(stage, 4)).toEqual([
        'POST /mcp 401',
        'GET /.well-known/oauth-protected-resource/mcp 200',
        `GET ${authorizationServer} 200`,
        `POST ${authorizationServer}/client-registration 201`,
      ]);
      // The sign-in itself is between the client and the provider.
      const seen = stage.front.accessLog.join('') + stage.front.log.join('');
      for (const secret of [returned.get('code'), memory.codeVerifier(), memory.tokens()?.access_token])
        expect(seen).not.toContain(secret);
      expect(stage.idp.asked).toContain('POST /realms/main/protocol/openid-connect/token');
    },
  );

  test('the v1 client cannot redeem an authorization code twice', async () => {
    await using stage = await scene({});
    const client = firstGeneration(stage.url);
    const returned = await upToCode(client);
    await client.finish(returned);
    await expect(client.finish(returned)).rejects.toThrow('grant request is invalid');
    expect(client.memory.granted).toHaveLength(1);
  });

  test('the v1 client refreshes an expired token without user interaction', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    try {
      await using stage = await scene({});
      const client = firstGeneration(stage.url);
      await client.finish(await upToCode(client));
      // The gateway allows a clock skew of one minute.
      const later = Date.now() + (ACCESS_TOKEN_LIFETIME + 61) * 1000;
      expect(await client.call(() => vi.setSystemTime(later))).toEqual(SAID);
      expect(client.memory.granted.length).toBeGreaterThan(1);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('the official MCP client v2', () => {
  test('the v2 client signs in at the provider that the resource metadata names and that sends iss', async () => {
    await using stage = await scene({ sendsIss: true }, { authorizationServer: 'issuer' });
    const client = secondGeneration(stage.url);
    await client.finish(await upToCode(client));
    expect(await client.call()).toEqual(SAID);
    expect(stage.idp.asked).toContain('GET /.well-known/oauth-authorization-server/realms/main');
    expect(stage.idp.asked).toContain('POST /realms/main/clients-registrations/openid-connect');
    expect(await requestsAt(stage, 2)).toEqual([
      'POST /mcp 401',
      'GET /.well-known/oauth-protected-resource/mcp 200',
    ]);
  });

  test('the v2 client signs in through the gateway when the provider does not send iss', async () => {
    await using stage = await scene({ sendsIss: false });
    const client = secondGeneration(stage.url);
    await client.finish(await upToCode(client));
    expect(await client.call()).toEqual(SAID);
    expect(stage.front.accessLog.join('')).toContain('/client-registration');
  });

  test("the v2 client rejects a provider's iss that differs from the gateway's issuer", async () => {
    await using stage = await scene({ sendsIss: true });
    const client = secondGeneration(stage.url);
    const returned = await upToCode(client);
    expect(returned.get('iss')).toBe(stage.idp.issuer);
    await expect(client.finish(returned)).rejects.toMatchObject({
      kind: 'authorization_response',
      expected: stage.url,
      received: stage.idp.issuer,
    });
    expect(client.memory.granted).toEqual([]);
  });
});
