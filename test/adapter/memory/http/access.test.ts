import { describe, expect, test } from 'vitest';
import { MEMORY_API_LIMITS } from '../../../../src/core/memory-limits.ts';
import { memoryBackend } from '../../../kit/memory-backend.ts';
import { send } from '../../../kit/send.ts';
import { until } from '../../../kit/until.ts';

describe('the API key of the memory backend', () => {
  test('the API key is required for the API, but not for pages without data', async () => {
    await using backend = await memoryBackend({ key: 'right-key' });
    const status = async (path: string, authorization?: string) =>
      (await backend.get(path, authorization === undefined ? {} : { authorization })).status;
    expect(await status('stats')).toBe(401);
    expect(await status('stats', 'Bearer wrong-key')).toBe(401);
    expect(await status('stats', 'Basic right-key')).toBe(401);
    expect(await status('stats', 'Bearer right-key')).toBe(200);
    expect(await status('stats', 'bearer right-key')).toBe(200);
    expect(await status('/health')).toBe(200);
    expect(await status('/ui/')).toBe(200);
    const refused = await backend.post('chat', { sessionId: 's', role: 'user', content: 'x' });
    expect(refused.body.error).toEqual({
      code: 'unauthorized',
      message: 'a bearer token is required',
      details: {},
    });
    expect(refused.headers.get('www-authenticate')).toBe('Bearer');
    expect((await backend.memory.store.stats()).turns).toBe(0);
    expect(JSON.stringify(backend.log)).not.toContain('right-key');
  });

  test('the API key cannot be bypassed by another spelling of the path', async () => {
    await using backend = await memoryBackend({ key: 'right-key' });
    for (const target of [
      '/api//memory/stats',
      '/api/memory/../memory/stats',
      '/%61pi/memory/stats',
      '/API/memory/stats',
    ])
      expect([401, 404]).toContain((await send(backend.url, { target })).status);
  });
});

test('pages of other sites cannot use a backend on loopback', async () => {
  await using backend = await memoryBackend({ allowedHosts: ['memory.test'] });
  const status = async (headers: Record<string, string>) =>
    (await send(`${backend.url}/api/memory/stats`, { headers })).status;
  expect(await status({ host: 'evil.test' })).toBe(403);
  expect(await status({ origin: 'https://evil.test' })).toBe(403);
  expect(await status({ host: 'memory.test' })).toBe(200);
  expect(await status({ origin: 'http://localhost:5173' })).toBe(200);
});

test('requests over the concurrency limit are rejected immediately', async () => {
  await using backend = await memoryBackend();
  const { store } = backend.memory;
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let waiting = 0;
  const stats = store.stats.bind(store);
  store.stats = async () => {
    waiting += 1;
    await released;
    return stats();
  };
  const { requestsInFlight } = MEMORY_API_LIMITS;
  const held = Array.from({ length: requestsInFlight }, () => send(`${backend.url}/api/memory/stats`));
  await until(() => waiting === requestsInFlight);
  const refused = await send(`${backend.url}/api/memory/stats`);
  expect([refused.status, refused.headers['retry-after']]).toEqual([503, '1']);
  expect(JSON.parse(refused.text).error.code).toBe('busy');
  release();
  expect(new Set((await Promise.all(held)).map(({ status }) => status))).toEqual(new Set([200]));
  expect((await send(`${backend.url}/api/memory/stats`)).status).toBe(200);
});
