import {
  Client as Client2,
  StreamableHTTPClientTransport as Transport2,
  UnauthorizedError as Unauthorized2,
} from '@modelcontextprotocol/client';
import { UnauthorizedError as Unauthorized1 } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { describe, expect, test, vi } from 'vitest';
import { chaos } from '../../../kit/config.ts';
import type { TestGateway } from '../../../kit/gateway.ts';
import { browse, OAuthMemory } from '../../../kit/oauth-client.ts';
import {
  ACCESS_TOKEN_LIFETIME,
  type OidcProvider,
  type OidcProviderOptions,
  startOidcProvider,
} from '../../../kit/oidc-provider.ts';
import { protectedGateway, signIn } from '../../../kit/sign-in.ts';
import { refusingPort } from '../../../kit/upstream.ts';
import { verifies } from '../../../kit/verifies.ts';

const INFO = { name: 'client', version: '1' };

interface Scene extends AsyncDisposable {
  readonly idp: OidcProvider;
  readonly front: TestGateway;
  readonly url: URL;
}

/** A real provider and a gateway in front of one stdio server, at the address that its metadata names. */
async function scene(options: OidcProviderOptions, more: object = {}): Promise<Scene> {
  const idp = await startOidcProvider(options);
  const port = await refusingPort();
  const resourceMetadata = {
    resource: `http://127.0.0.1:${port}/mcp`,
    scopesSupported: ['read', 'write'],
    bearerMethodsSupported: ['header'],
  };
  const authorization = { rules: ['"write" in jwt.scope.split(" ") && jwt.sub == "alice"'] };
  const front = await protectedGateway(
    [
      {
        policies: { ...signIn(idp.issuer, { resourceMetadata, ...more }), authorization },
        backends: [{ mcp: { targets: [chaos('one')] } }],
      },
    ],
    { port },
  );
  return {
    idp,
    front,
    url: new URL(`${front.url}/mcp`),
    [Symbol.asyncDispose]: async () => {
      await front.close();
      await idp[Symbol.asyncDispose]();
    },
  };
}

/** What the client asked the gateway for without a token. */
async function pathsOf({ front }: Scene, count: number): Promise<string[]> {
  const lines = [];
  for (let line = 1; line <= count; line += 1) lines.push(await front.accessLine(line));
  return lines.map((line) => `${line['http.method']} ${line['http.path']} ${line['http.status']}`);
}

const CALL = { name: 'echo', arguments: { message: 'signed in' } };
const SAID = [{ type: 'text', text: 'signed in' }];

describe('the official client of the first generation', () => {
  /** Signs in as far as the browser; returns what it comes back with. */
  async function upToCode({ url }: Scene, memory: OAuthMemory): Promise<[Transport1, URLSearchParams]> {
    const transport = new Transport1(url, { authProvider: memory });
    await expect(new Client1(INFO).connect(transport)).rejects.toBeInstanceOf(Unauthorized1);
    return [transport, await browse(memory.authorizationUrl)];
  }

  verifies(
    ['gateway.auth.idp.client', 'gateway.idp.token'],
    'finds out where to sign in, registers, and calls a tool, in the default mode',
    async () => {
      await using stage = await scene({});
      const memory = new OAuthMemory();
      const [transport, returned] = await upToCode(stage, memory);
      expect(memory.authorizationUrl?.searchParams.get('code_challenge_method')).toBe('S256');
      expect(memory.authorizationUrl?.searchParams.get('scope')).toContain('read write');
      await transport.finishAuth(returned.get('code') as string);
      const client = new Client1(INFO);
      await client.connect(new Transport1(stage.url, { authProvider: memory }));
      expect((await client.callTool(CALL)).content).toEqual(SAID);
      await client.close();
      const authorizationServer = '/.well-known/oauth-authorization-server/mcp';
      expect(await pathsOf(stage, 4)).toEqual([
        'POST /mcp 401',
        'GET /.well-known/oauth-protected-resource/mcp 200',
        `GET ${authorizationServer} 200`,
        `POST ${authorizationServer}/client-registration 201`,
      ]);
      // Signing in itself is between the client and the provider.
      const seen = stage.front.accessLog.join('') + stage.front.log.join('');
      for (const secret of [returned.get('code'), memory.codeVerifier(), memory.tokens()?.access_token])
        expect(seen).not.toContain(secret);
      expect(stage.idp.asked).toContain('POST /realms/main/protocol/openid-connect/token');
    },
  );

  test('cannot use a code twice', async () => {
    await using stage = await scene({});
    const memory = new OAuthMemory();
    const [transport, returned] = await upToCode(stage, memory);
    const code = returned.get('code') as string;
    await transport.finishAuth(code);
    await expect(transport.finishAuth(code)).rejects.toThrow('grant request is invalid');
    expect(memory.granted).toHaveLength(1);
  });

  test('renews a token that has expired without asking anybody', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    try {
      await using stage = await scene({});
      const memory = new OAuthMemory();
      const [transport, returned] = await upToCode(stage, memory);
      await transport.finishAuth(returned.get('code') as string);
      const client = new Client1(INFO);
      await client.connect(new Transport1(stage.url, { authProvider: memory }));
      // The gateway forgives a minute.
      vi.setSystemTime(Date.now() + (ACCESS_TOKEN_LIFETIME + 61) * 1000);
      expect((await client.callTool(CALL)).content).toEqual(SAID);
      expect(memory.granted.length).toBeGreaterThan(1);
      await client.close();
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('the official client of the second generation', () => {
  async function upToCode({ url }: Scene, memory: OAuthMemory): Promise<[Transport2, URLSearchParams]> {
    const transport = new Transport2(url, { authProvider: memory });
    await expect(new Client2(INFO).connect(transport)).rejects.toBeInstanceOf(Unauthorized2);
    return [transport, await browse(memory.authorizationUrl)];
  }

  async function signInAndCall(stage: Scene): Promise<unknown> {
    const memory = new OAuthMemory();
    const [transport, returned] = await upToCode(stage, memory);
    await transport.finishAuth(returned);
    const client = new Client2(INFO);
    await client.connect(new Transport2(stage.url, { authProvider: memory }));
    const { content } = await client.callTool(CALL);
    await client.close();
    return content;
  }

  test('signs in at the provider that the resource names, which sends its issuer', async () => {
    await using stage = await scene({ sendsIss: true }, { authorizationServer: 'issuer' });
    expect(await signInAndCall(stage)).toEqual(SAID);
    expect(stage.idp.asked).toContain('GET /.well-known/oauth-authorization-server/realms/main');
    expect(stage.idp.asked).toContain('POST /realms/main/clients-registrations/openid-connect');
    expect(await pathsOf(stage, 2)).toEqual([
      'POST /mcp 401',
      'GET /.well-known/oauth-protected-resource/mcp 200',
    ]);
  });

  test('signs in through the gateway when the provider does not send its issuer', async () => {
    await using stage = await scene({ sendsIss: false });
    expect(await signInAndCall(stage)).toEqual(SAID);
    expect(stage.front.accessLog.join('')).toContain('/client-registration');
  });

  test('refuses to, as it must, when the provider sends an issuer that the gateway is not', async () => {
    await using stage = await scene({ sendsIss: true });
    const memory = new OAuthMemory();
    const [transport, returned] = await upToCode(stage, memory);
    expect(returned.get('iss')).toBe(stage.idp.issuer);
    await expect(transport.finishAuth(returned)).rejects.toMatchObject({
      kind: 'authorization_response',
      expected: `${stage.url}`,
      received: stage.idp.issuer,
    });
    expect(memory.granted).toEqual([]);
  });
});
