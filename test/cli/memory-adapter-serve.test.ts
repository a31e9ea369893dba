import { describe, expect, test } from 'vitest';
import { cli } from '../kit/cli.ts';
import { fakeBackend, reply } from '../kit/fake-backend.ts';
import { post } from '../kit/mcp.ts';
import { callMessage } from '../kit/memory-adapter.ts';
import { freePort, occupy } from '../kit/ports.ts';
import { agctl, service } from '../kit/process.ts';
import { until } from '../kit/until.ts';
import { verifies } from '../kit/verifies.ts';

const TURN = { sessionId: 's', role: 'user', content: 'x' };
const STORED = { id: 't', sessionId: 's', role: 'user', createdAt: '2026-01-01T00:00:00Z' };

describe('agctl memory-adapter serve', () => {
  verifies(
    ['memory.config.port', 'memory.config.url', 'memory.config.base-url'],
    'memory-adapter serve takes port and backend from the environment',
    async () => {
      await using backend = await fakeBackend(reply(201, STORED));
      const port = await freePort();
      await using adapter = await service(['memory-adapter', 'serve'], {
        env: { PORT: String(port), MEMORY_API_URL: `${backend.url}/`, MEMORY_API_KEY: 'k3y' },
      });
      expect(adapter.url).toBe(`http://127.0.0.1:${port}`);
      expect(adapter.stderr).toContain(`backend   ${backend.url}/api/memory`);
      const { result } = await post(`${adapter.url}/mcp`, callMessage('store_episodic', TURN));
      expect(result.structuredContent).toEqual(STORED);
      expect(backend.seen[0]).toMatchObject({
        target: '/api/memory/chat',
        headers: { authorization: 'Bearer k3y' },
      });
      expect(adapter.stdout).toBe('');
      expect(adapter.stderr).not.toContain('k3y');
    },
  );

  verifies('memory.config.port', 'memory-adapter serve listens on 8080 by default', async () => {
    const { stdout } = await cli(['memory-adapter', 'serve', '--help']);
    expect(stdout).toContain('port to listen on (PORT, 8080)');
    const { server, taken } = await occupy(8080);
    const { code, stderr } = await agctl(['memory-adapter', 'serve'], { env: { PORT: undefined } });
    if (taken) server.close();
    expect([code, stderr]).toEqual([
      1,
      'error: port 8080 is already in use\n  = help: stop the other process, or choose another port with --port or PORT\n',
    ]);
  });

  test.each([
    [{ PORT: 'http' }, 'PORT must be a port'],
    [{ PORT: '65536' }, 'PORT must be a port'],
    [{ MEMORY_API_URL: 'ftp://x' }, 'MEMORY_API_URL must begin with http:// or https://'],
    [{ MEMORY_API_URL: '' }, 'MEMORY_API_URL is empty'],
    [{ MEMORY_API_KEY: 'a b' }, 'MEMORY_API_KEY must be printable'],
  ])('memory-adapter serve with %j is exit code 2', async (env, message) => {
    const { code, stderr } = await cli(['memory-adapter', 'serve'], { env });
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });

  test('memory-adapter serve completes a call in flight after SIGTERM', async () => {
    let answer: () => void = () => undefined;
    await using backend = await fakeBackend((res, seen) => {
      answer = () => reply(201, STORED)(res, seen);
    });
    await using adapter = await service(['memory-adapter', 'serve', '--port', '0'], {
      env: { MEMORY_API_URL: backend.url },
    });
    const call = post(`${adapter.url}/mcp`, callMessage('store_episodic', TURN));
    await until(() => backend.seen.length === 1);
    adapter.kill('SIGTERM');
    await until(() =>
      adapter.stderr.includes('SIGTERM: finishing open requests; a second signal stops now\n'),
    );
    answer();
    expect((await call).result.structuredContent).toEqual(STORED);
    expect(await adapter.finished).toMatchObject({ code: 0, signal: null });
  });
});
