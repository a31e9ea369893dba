import { expect, test } from 'vitest';
import { mcpConfig } from '../../kit/config.ts';
import { gateway } from '../../kit/gateway.ts';
import { openSession, post } from '../../kit/mcp.ts';
import { mcpUpstream, type Script } from '../../kit/mcp-upstream.ts';

const KEY = { config: { session: { key: '5e'.repeat(32) } } };

test.each([
  ['with config.session.key keeps its session at an HTTP target', KEY, 1],
  ['without config.session.key ends its session at an HTTP target', {}, 0],
])('a gateway that stops %s', async (_what, config, kept) => {
  await using up = await mcpUpstream();
  {
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }], config));
    await openSession(`${gate.url}/mcp`);
    expect(up.sessions.size).toBe(1);
  }
  expect(up.sessions.size).toBe(kept);
});

test('a session continues at another gateway with the same key after the first one has stopped', async () => {
  await using up = await mcpUpstream();
  const yaml = mcpConfig([{ name: 'up', mcp: { host: up.url } }], KEY);
  let id = '';
  {
    await using first = await gateway(yaml);
    ({ id } = await openSession(`${first.url}/mcp`));
  }
  await using second = await gateway(yaml);
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'say' } };
  const { status, result } = await post(`${second.url}/mcp`, call, { 'mcp-session-id': id });
  expect([status, result === undefined]).toEqual([200, false]);
  expect(up.of('initialize')).toHaveLength(1);
});

test('a target that answers 400 for a session that it no longer knows gets a new session', async () => {
  // As in the examples of the official SDK.
  const refuse: Script = ({ headers, message }, response) => {
    if (message?.method === 'initialize' || up.sessions.has(String(headers['mcp-session-id']))) return false;
    const error = { code: -32_000, message: 'Bad Request: No valid session ID provided' };
    response.writeHead(400, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', error, id: null }));
    return true;
  };
  await using up = await mcpUpstream({ script: refuse });
  await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]));
  const session = await openSession(`${gate.url}/mcp`);
  up.sessions.clear();
  const { result, error } = await session.request('tools/call', { name: 'say' });
  expect([result === undefined, error]).toEqual([false, undefined]);
  expect(up.of('initialize')).toHaveLength(2);
});
