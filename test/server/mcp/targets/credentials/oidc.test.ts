import { createRemoteJWKSet } from 'jose/jwks/remote';
import { jwtVerify } from 'jose/jwt/verify';
import { expect, test } from 'vitest';
import { mcpConfig } from '../../../../kit/config.ts';
import { gateway } from '../../../../kit/gateway.ts';
import { AUDIENCE } from '../../../../kit/idp.ts';
import { openSession } from '../../../../kit/mcp.ts';
import { mcpUpstream } from '../../../../kit/mcp-upstream.ts';
import { GATEWAY, startOidcProvider } from '../../../../kit/oidc-provider.ts';

test('servers that validate tokens of a real provider get one of their own audience for each user', async () => {
  await using provider = await startOidcProvider({ hasPasswords: true, exchangesTokens: true });
  const { issuer } = provider;
  const endpoint = `${issuer}/protocol/openid-connect`;
  const keys = createRemoteJWKSet(new URL(`${endpoint}/certs`));
  /** A server that accepts only tokens for itself, and whose answers name the user. */
  const server = (audience: string) => {
    const seen: { user: string | undefined; message: unknown }[] = [];
    return {
      seen,
      up: mcpUpstream({
        name: audience,
        script: async ({ headers, message }, response) => {
          const token = String(headers['authorization']).replace('Bearer ', '');
          const { payload } = await jwtVerify(token, keys, { issuer, audience }).catch(() => ({
            payload: undefined,
          }));
          if (payload === undefined) response.writeHead(401).end();
          else if (message?.method === 'tools/call')
            seen.push({ user: payload.sub, message: message.params.arguments.message });
          return payload === undefined;
        },
      }),
    };
  };
  const [tickets, search] = [server('tickets'), server('search')];
  await using ticketServer = await tickets.up;
  await using searchServer = await search.up;
  const target = (name: string, host: string): object => {
    const { host: address, pathname } = new URL(`${endpoint}/token`);
    const exchange = { host: address, path: pathname, audiences: [name], clientAuth: GATEWAY };
    return { name, mcp: { host }, policies: { backendAuth: { oauthTokenExchange: exchange } } };
  };
  const mcpAuthentication = { issuer, audiences: [AUDIENCE], jwks: { url: `${endpoint}/certs` } };
  await using gate = await gateway(
    mcpConfig([target('tickets', ticketServer.url), target('search', searchServer.url)], {
      route: { policies: { mcpAuthentication } },
    }),
  );
  const use = async (username: string): Promise<void> => {
    const body = new URLSearchParams({
      grant_type: 'password',
      client_id: AUDIENCE,
      username,
      password: 'any',
    });
    const answer = await fetch(`${endpoint}/token`, { method: 'POST', body });
    const { access_token: token } = (await answer.json()) as { access_token: string };
    const session = await openSession(`${gate.url}/mcp`, { authorization: `Bearer ${token}` });
    await Promise.all(
      ['tickets_say', 'search_say'].map(async (name) => {
        const { result } = await session.request('tools/call', { name, arguments: { message: username } });
        expect(result.content[0].text).toContain(username);
      }),
    );
    expect((await session.end()).status).toBe(204);
  };
  await Promise.all(['alice', 'bob'].map(use));
  for (const { seen } of [tickets, search]) {
    expect(seen.map(({ user }) => user).sort()).toEqual(['alice', 'bob']);
    for (const { user, message } of seen) expect(message).toBe(user);
  }
  expect(ticketServer.sessions.size + searchServer.sessions.size).toBe(0);
});
