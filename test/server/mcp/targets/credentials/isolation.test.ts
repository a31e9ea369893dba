import { describe, expect, test } from 'vitest';
import { mcpConfig } from '../../../../kit/config.ts';
import { gateway } from '../../../../kit/gateway.ts';
import { AUDIENCE, startIdp } from '../../../../kit/idp.ts';
import { INITIALIZE, type McpReply, openSession, post, toolCall } from '../../../../kit/mcp.ts';
import { type McpUpstream, mcpUpstream, type Received } from '../../../../kit/mcp-upstream.ts';
import { modernCall, modernUpstream } from '../../../../kit/modern.ts';
import { exchangeServer, issuedFor } from '../../../../kit/token-exchange.ts';
import { httpUpstream, refusingPort } from '../../../../kit/upstream.ts';

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const target = (name: string, host: string, backendAuth: object): object => ({
  name,
  mcp: { host },
  policies: { backendAuth },
});
const USERS = ['alice', 'bob'] as const;

/** Calls `say` of both targets for a user, several times at once. The messages name the user. */
type Client = (url: string, user: string, headers: Record<string, string>) => Promise<McpReply[]>;

const CALLS = Array.from({ length: 6 }, (_, index) => index);
const toolOf = (index: number): string => (index % 2 === 0 ? 'a_say' : 'b_say');

const inSession: Client = async (url, user, headers) => {
  const clientInfo = { name: user, version: '1' };
  const session = await openSession(url, headers, {
    ...INITIALIZE,
    params: { ...INITIALIZE.params, clientInfo },
  });
  const replies = await Promise.all([
    session.request('tools/list'),
    ...CALLS.map((index) =>
      session.request('tools/call', { name: toolOf(index), arguments: { message: user } }),
    ),
  ]);
  await session.end();
  return replies.slice(1);
};
const withoutSession: Client = (url, user, headers) =>
  Promise.all(
    CALLS.map((id) => post(url, { jsonrpc: '2.0', ...toolCall(id, toolOf(id), { message: user }) }, headers)),
  );
const ofLatestRevision: Client = (url, user, headers) =>
  Promise.all(CALLS.map((id) => modernCall(url, toolOf(id), { message: user }, { id, headers })));

const WAYS: readonly [name: string, client: Client, statefulMode: string, start: typeof modernUpstream][] = [
  ['sessions', inSession, 'stateful', (name) => mcpUpstream({ name }) as ReturnType<typeof modernUpstream>],
  [
    'no sessions',
    withoutSession,
    'stateless',
    (name) => mcpUpstream({ name }) as ReturnType<typeof modernUpstream>,
  ],
  ['sessions at servers of 2026-07-28', inSession, 'stateful', modernUpstream],
  ['revision 2026-07-28', ofLatestRevision, 'stateful', modernUpstream],
  [
    'revision 2026-07-28 at servers with sessions',
    ofLatestRevision,
    'stateful',
    (name) => mcpUpstream({ name }) as ReturnType<typeof modernUpstream>,
  ],
];

/** Each session at a server, and each message that names a user, has the token of one user. */
function expectIsolated({ received }: McpUpstream, audience: string, tokens: Record<string, string>): void {
  const allowed = USERS.map((user) => `Bearer ${issuedFor(tokens[user] ?? '', audience)}`);
  const bySession = new Map<unknown, Set<unknown>>();
  for (const { headers, text } of received) {
    expect(allowed).toContain(headers['authorization']);
    for (const [index, user] of USERS.entries())
      if (text.includes(user)) expect(headers['authorization']).toBe(allowed[index]);
    const session = headers['mcp-session-id'];
    if (session !== undefined)
      bySession.set(session, (bySession.get(session) ?? new Set()).add(headers['authorization']));
  }
  expect([...bySession.values()].filter((users) => users.size > 1)).toEqual([]);
  for (const user of USERS)
    expect(received.filter(({ text }) => text.includes(user)).length).toBeGreaterThan(2);
}

// IBM/mcp-context-forge#1078 and #2055: a call with the token of whoever had signed in first, or in the session of another.
describe.each(WAYS)('two users at once, with %s', (_, client, statefulMode, start) => {
  test.each([
    ['that a policy has validated', true],
    ['that nobody has validated', false],
  ])('get tokens of their own at each target, for tokens %s', async (_what, isValidated) => {
    await using idp = await startIdp();
    await using server = await exchangeServer();
    await using a = await start('a');
    await using b = await start('b');
    const jwks = JSON.stringify({ keys: [idp.key.jwk] });
    const jwtAuth = { mode: 'strict', issuer: idp.issuer, audiences: [AUDIENCE], jwks };
    const config = mcpConfig(
      [
        target('a', a.url, { oauthTokenExchange: server.exchange('of-a') }),
        target('b', b.url, { oauthTokenExchange: server.exchange('of-b') }),
      ],
      { backend: { statefulMode }, ...(isValidated && { route: { policies: { jwtAuth } } }) },
    );
    await using gate = await gateway(config);
    const tokens = Object.fromEntries(
      USERS.map((sub) => [sub, isValidated ? idp.token({ sub }) : `token-of-${sub}`]),
    );
    const replies = await Promise.all(
      USERS.map((user) => client(`${gate.url}/mcp`, user, bearer(tokens[user] ?? ''))),
    );
    for (const [index, user] of USERS.entries())
      for (const { text } of replies[index] ?? []) expect(text).toContain(`says ${user}`);
    expectIsolated(a, 'of-a', tokens);
    expectIsolated(b, 'of-b', tokens);
    // One exchange for each user and target: later requests share the token.
    expect(server.asked).toHaveLength(4);
  });

  test('do not share a session if their tokens are in a query parameter', async () => {
    await using server = await exchangeServer();
    await using a = await start('a');
    await using b = await start('b');
    const subjectToken = { source: { queryParameter: { name: 'own' } } };
    const config = mcpConfig(
      [
        target('a', a.url, { oauthTokenExchange: server.exchange('of-a', { subjectToken }) }),
        target('b', b.url, { oauthTokenExchange: server.exchange('of-b', { subjectToken }) }),
      ],
      { backend: { statefulMode } },
    );
    await using gate = await gateway(config);
    await Promise.all(USERS.map((user) => client(`${gate.url}/mcp?own=token-of-${user}`, user, {})));
    const tokens = Object.fromEntries(USERS.map((user) => [user, `token-of-${user}`]));
    expectIsolated(a, 'of-a', tokens);
    expectIsolated(b, 'of-b', tokens);
  });
});

describe('a token that cannot be had', () => {
  test.each(WAYS)(
    'ends the calls of one user at one target, with %s',
    async (_, client, statefulMode, start) => {
      await using server = await exchangeServer({
        refuses: (audience, subject) => audience === 'of-a' && subject === 'token-of-alice',
      });
      await using a = await start('a');
      await using b = await start('b');
      const config = mcpConfig(
        [
          target('a', a.url, { oauthTokenExchange: server.exchange('of-a') }),
          target('b', b.url, { oauthTokenExchange: server.exchange('of-b') }),
        ],
        { backend: { statefulMode } },
      );
      await using gate = await gateway(config);
      const [ofAlice = [], ofBob = []] = await Promise.all(
        USERS.map((user) => client(`${gate.url}/mcp`, user, bearer(`token-of-${user}`))),
      );
      for (const index of CALLS) {
        expect(ofBob[index]?.text).toContain('says bob');
        if (index % 2 === 1) expect(ofAlice[index]?.text).toContain('says alice');
        else
          expect(ofAlice[index]?.error.message).toContain(
            'target "a" is not available: the gateway has no credential for the server: the authorization server refused to exchange the token',
          );
      }
      // The refusal of the server repeats the token, which only the log of the server itself may have.
      expect(`${gate.log.join('')}${gate.accessLog.join('')}${JSON.stringify(ofAlice)}`).not.toMatch(
        /token-of-/,
      );
      expect(new Set(a.received.map(({ headers }) => headers['authorization']))).toEqual(
        new Set([`Bearer ${issuedFor('token-of-bob', 'of-a')}`]),
      );
    },
  );

  test('sends nothing at all, also not the header of the client', async () => {
    const host = `127.0.0.1:${await refusingPort()}`;
    await using up = await mcpUpstream();
    const oauthTokenExchange = { host, audiences: ['x'] };
    await using gate = await gateway(mcpConfig([target('up', up.url, { oauthTokenExchange })]));
    const reply = await post(`${gate.url}/mcp`, INITIALIZE, bearer('mine'));
    expect(reply.error.message).toContain(
      'target "up": the gateway has no credential for the server: the identity provider did not return a valid response',
    );
    const bare = await post(`${gate.url}/mcp`, INITIALIZE);
    expect(bare.error.message).toContain('the request has no token to exchange');
    expect(up.received).toEqual([]);
    expect(gate.log.join('')).toContain('could not be reached: connection refused');
  });
});

describe('what a server answers', () => {
  test('its 401 with a challenge becomes that of the client', async () => {
    await using up = await mcpUpstream({
      script: (_, response) => {
        const challenge = 'Bearer error="insufficient_scope", scope="write"';
        response.writeHead(401, { 'www-authenticate': challenge, 'content-type': 'text/plain' }).end('more');
        return true;
      },
    });
    await using server = await exchangeServer();
    const oauthTokenExchange = server.exchange('x');
    await using gate = await gateway(mcpConfig([target('up', up.url, { oauthTokenExchange })]));
    const reply = await post(`${gate.url}/mcp`, INITIALIZE, bearer('mine'));
    expect([reply.status, reply.text]).toEqual([401, 'more']);
    expect(reply.headers.get('www-authenticate')).toBe('Bearer error="insufficient_scope", scope="write"');
  });

  // huggingface/chat-ui#2250: a server that sends whoever is signed in to a host that collects tokens.
  test.each([301, 302, 303, 307, 308])(
    'a redirect with %i to another origin gets no token',
    async (status) => {
      await using collector = await httpUpstream();
      await using up = await mcpUpstream({
        script: (_, response) => {
          response.writeHead(status, { location: `http://${collector.address}/capture` }).end();
          return true;
        },
      });
      await using server = await exchangeServer();
      const oauthTokenExchange = server.exchange('x');
      await using gate = await gateway(mcpConfig([target('up', up.url, { oauthTokenExchange })]));
      const reply = await post(`${gate.url}/mcp`, INITIALIZE, bearer('mine'));
      expect(reply.error.message).toContain('redirects to another origin');
      expect(collector.received).toEqual([]);
      expect(collector.connections).toBe(0);
    },
  );

  test('a redirect within the origin carries the token again', async () => {
    const moved = ({ path }: Received): boolean => path.startsWith('/mcp?');
    await using up = await mcpUpstream({
      script: (received, response) => {
        if (!moved(received)) return false;
        response.writeHead(307, { location: '/mcp/' }).end();
        return true;
      },
    });
    const key = { value: 'sesame-1234567890', location: { queryParameter: { name: 'key' } } };
    await using gate = await gateway(mcpConfig([target('up', up.url, { key })]));
    const session = await openSession(`${gate.url}/mcp`);
    expect(new Set(up.received.map(({ path }) => path))).toEqual(
      new Set(['/mcp?key=sesame-1234567890', '/mcp/?key=sesame-1234567890']),
    );
    await session.end();
  });
});
