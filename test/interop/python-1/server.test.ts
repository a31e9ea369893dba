import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { mcpConfig } from '../../kit/config.ts';
import { gateway } from '../../kit/gateway.ts';
import { openSession, toolCall } from '../../kit/mcp.ts';
import { freePort } from '../../kit/ports.ts';
import { until } from '../../kit/until.ts';

const python = process.env['MCP_PYTHON_1'] as string;
const script = new URL('server.py', import.meta.url).pathname;

/** Starts the server on this port. */
async function started(port: number, kind: string) {
  const child = spawn(python, [script, String(port), kind], { stdio: ['ignore', 'ignore', 'inherit'] });
  const answers = (): Promise<boolean> =>
    fetch(`http://127.0.0.1:${port}/none`).then(
      () => true,
      () => false,
    );
  await until(answers, 60_000);
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  return { stop, [Symbol.asyncDispose]: stop };
}

describe('a server of version 1 of the Python SDK', () => {
  // python-sdk#1727: 400 for an unknown session. python-sdk#1168: 307 to a trailing slash.
  test.each([
    ['Streamable HTTP', 'streamable', 'mcp', '/mcp'],
    ['Streamable HTTP below a mount that redirects', 'mounted', 'mcp', '/mcp'],
    ['HTTP+SSE', 'sse', 'sse', '/sse'],
  ])('with %s is called before and after a restart in the same session', async (_, kind, key, path) => {
    const port = await freePort();
    await using first = await started(port, kind);
    const target = { name: 'py', [key]: { host: `http://127.0.0.1:${port}${path}` } };
    await using gate = await gateway(mcpConfig([target]));
    const session = await openSession(`${gate.url}/mcp`);
    const sum = async (id: number): Promise<string> =>
      (await session.send(toolCall(id, 'add', { a: 1, b: id }))).result?.content[0].text;
    expect(await sum(1)).toBe('2');
    await first.stop();
    await using _second = await started(port, kind);
    expect(await sum(2)).toBe('3');
  });
});
