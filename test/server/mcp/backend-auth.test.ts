import { describe, expect, test } from 'vitest';
import { loadConfigText } from '../../../src/server/config/load.ts';
import { findProblems } from '../../../src/server/runtime/find-problems.ts';
import { chaos } from '../../kit/config.ts';
import { gateway } from '../../kit/gateway.ts';
import { AUDIENCE, startIdp } from '../../kit/idp.ts';
import { openSession } from '../../kit/mcp.ts';
import { type McpUpstream, mcpUpstream } from '../../kit/mcp-upstream.ts';

const through = (policies: object, targets: readonly object[]) =>
  gateway(JSON.stringify({ mcp: { port: 0, policies, targets } }));
const target = (up: McpUpstream, more: object = {}): object => ({
  name: 'up',
  mcp: { host: up.url },
  ...more,
});

/** The values of a header in the requests of one session with a call. */
async function sent(
  up: McpUpstream,
  policies: object,
  { name = 'authorization', headers = {}, more = {} } = {},
): Promise<unknown[]> {
  await using gate = await through(policies, [target(up, more)]);
  const session = await openSession(`${gate.url}/mcp`, headers);
  await session.request('tools/list');
  await session.request('tools/call', { name: 'say', arguments: { message: 'hello' } });
  return [
    ...new Set(up.received.filter(({ verb }) => verb === 'POST').map((request) => request.headers[name])),
  ];
}

describe('backendAuth of a route with MCP servers', () => {
  test('every message carries the key, instead of the credential of the client', async () => {
    await using up = await mcpUpstream();
    const headers = { authorization: 'Bearer mine' };
    expect(await sent(up, { backendAuth: { key: { value: 'sesame' } } }, { headers })).toEqual([
      'Bearer sesame',
    ]);
  });

  test('a key has its own header', async () => {
    await using up = await mcpUpstream();
    const key = { value: 'sesame', location: { header: { name: 'x-key' } } };
    expect(await sent(up, { backendAuth: { key } }, { name: 'x-key' })).toEqual(['sesame']);
  });

  test('passthrough sends the token of the client that jwtAuth has validated', async () => {
    await using idp = await startIdp();
    await using up = await mcpUpstream();
    const jwks = JSON.stringify({ keys: [idp.key.jwk] });
    const jwtAuth = { mode: 'strict', issuer: idp.issuer, audiences: [AUDIENCE], jwks };
    const headers = { authorization: `Bearer ${idp.token()}` };
    expect(await sent(up, { jwtAuth, backendAuth: { passthrough: {} } }, { headers })).toEqual([
      headers.authorization,
    ]);
    const bare = await mcpUpstream();
    await using _bare = bare;
    expect(await sent(bare, { jwtAuth }, { headers })).toEqual([undefined]);
  });

  test('the key of a target takes precedence', async () => {
    await using up = await mcpUpstream();
    const more = { policies: { backendAuth: { key: 'of-the-target' } } };
    expect(await sent(up, { backendAuth: { key: 'of-the-route' } }, { more })).toEqual([
      'Bearer of-the-target',
    ]);
  });

  test.each([
    [
      { key: { value: 'k', location: { queryParameter: { name: 'k' } } } },
      'the credential of a route for MCP servers is always in a header',
    ],
    [
      { aws: { accessKeyId: 'a', secretAccessKey: 'b', region: 'eu-west-1' } },
      '`aws` of a route has no effect on MCP servers',
    ],
    [{ gcp: {} }, '`gcp` of a route has no effect on MCP servers'],
  ])('%j is refused', async (backendAuth, message) => {
    await using up = await mcpUpstream();
    await expect(through({ backendAuth }, [target(up)])).rejects.toThrow(message);
  });

  test('with stdio servers only, a warning says that it has no effect', async () => {
    const text = JSON.stringify({
      mcp: { port: 0, policies: { backendAuth: { key: 'k' } }, targets: [chaos('a')] },
    });
    const loaded = loadConfigText(text, 'gateway.yaml', {});
    const messages = (await findProblems(loaded, { folder: '/', env: {} })).map(({ message }) => message);
    expect(messages).toContainEqual(expect.stringContaining('no effect on `stdio` servers'));
  });
});
