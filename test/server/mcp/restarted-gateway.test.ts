import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { mcpConfig } from '../../kit/config.ts';
import { openSession, post } from '../../kit/mcp.ts';
import { freePort } from '../../kit/ports.ts';
import { serve } from '../../kit/process.ts';

const SESSIONS = 20;

/** A Streamable HTTP server of the official SDK, in a process of its own. */
async function httpServer(): Promise<{ readonly host: string } & AsyncDisposable> {
  const fixture = fileURLToPath(new URL('../../kit/everything-server.ts', import.meta.url));
  const child = spawn(process.execPath, [fixture, '--http', '0'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
  return {
    host: line.trim(),
    [Symbol.asyncDispose]: async () => {
      child.kill();
      await once(child, 'exit');
    },
  };
}

test('20 of 20 sessions with two HTTP targets continue after the gateway was killed and restarted with the same session key', async () => {
  await using one = await httpServer();
  await using two = await httpServer();
  const targets = [
    { name: 'one', mcp: { host: one.host } },
    { name: 'two', mcp: { host: two.host } },
  ];
  const port = await freePort();
  const config = { session: { key: '5e'.repeat(32) } };
  const yaml = mcpConfig(targets, { config }).replace('"port":0', `"port":${port}`);
  const first = await serve(yaml);
  const url = `${first.url}/mcp`;
  const sessions = await Promise.all(Array.from({ length: SESSIONS }, () => openSession(url)));
  const listed = await sessions[0]?.request('tools/list');
  first.kill('SIGKILL');
  await first.finished;

  await using second = await serve(yaml);
  expect(`${second.url}/mcp`).toBe(url);
  const continued = await Promise.all(
    sessions.map(async (session) => {
      const { result: list } = await session.request('tools/list');
      const { result: call } = await session.request('tools/call', { name: 'two_test_simple_text' });
      return JSON.stringify(list) === JSON.stringify(listed?.result) && call?.content[0].type === 'text';
    }),
  );
  expect(continued.filter(Boolean)).toHaveLength(SESSIONS);
  // What continues can also be ended.
  expect((await sessions[0]?.end())?.status).toBe(204);
  const ended = { 'mcp-session-id': sessions[0]?.id as string };
  expect((await post(url, { jsonrpc: '2.0', id: 1, method: 'tools/list' }, ended)).status).toBe(404);
}, 180_000);
