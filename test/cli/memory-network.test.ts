import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cli } from '../kit/cli.ts';
import { type FakeBackend, fakeBackend, reply } from '../kit/fake-backend.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { gateway } from '../kit/gateway.ts';
import { openSession, post } from '../kit/mcp.ts';
import { callMessage } from '../kit/memory-adapter.ts';
import { addressOf } from '../kit/memory-processes.ts';
import { type RunOptions, type ServeProcess, service } from '../kit/process.ts';

const TURN = { sessionId: 's', role: 'user', content: 'x' };
const STORED = { id: 't', sessionId: 's', role: 'user', createdAt: '2026-01-01T00:00:00Z' };
const KEY = 'adapter-key-1';

let backend: FakeBackend;
/** At all addresses, with a key. */
let guarded: ServeProcess;
beforeAll(async () => {
  backend = await fakeBackend(reply(201, STORED));
  guarded = await adapter(['--host', '0.0.0.0'], { MEMORY_ADAPTER_KEY: KEY, MEMORY_API_KEY: 'k3y' });
});
afterAll(async () => {
  await guarded[Symbol.asyncDispose]();
  await backend[Symbol.asyncDispose]();
});

const adapter = (args: readonly string[], env: RunOptions['env'] = {}): Promise<ServeProcess> =>
  service(['memory-adapter', 'serve', '--port', '0', ...args], {
    env: { MEMORY_API_URL: backend.url, ...env },
  });

/** The same port at another address of this machine's loopback network. */
const elsewhere = (url: string): string => url.replace('127.0.0.1', '127.0.0.2');

describe('listening addresses of the memory services', () => {
  // Only Linux answers on all of 127.0.0.0/8.
  test.skipIf(process.platform !== 'linux').each([
    ['memory-adapter', ['mcp']],
    ['memory-backend', ['api']],
    ['memory', ['mcp', 'api']],
  ] as const)(
    '%s serve listens only on 127.0.0.1 by default, and prints no warning',
    async (command, names) => {
      await using folder = await temporaryFolder();
      const ports = command === 'memory' ? ['--backend-port', '0'] : [];
      await using running = await service([command, 'serve', '--port', '0', ...ports], {
        env: { MEMORY_API_URL: backend.url, MEMORY_DATA_DIR: join(folder.path, 'data') },
      });
      expect(running.stderr).not.toContain('warning');
      for (const name of names) {
        const { origin } = new URL(addressOf(running, name));
        expect((await fetch(`${origin}/health`)).status).toBe(200);
        await expect(fetch(`${elsewhere(origin)}/health`)).rejects.toMatchObject({
          cause: { code: 'ECONNREFUSED' },
        });
      }
    },
  );

  test.each([
    [['memory-adapter', 'serve', '--host', '0.0.0.0'], {}],
    [['memory-adapter', 'serve', '--host', '::'], {}],
    [['memory', 'serve', '--host', '0.0.0.0'], { MEMORY_API_KEY: 'k3y' }],
  ])('%j is rejected without an API key for the tools', async (args, env) => {
    await using folder = await temporaryFolder();
    const { code, stderr } = await cli([...args, '--port', '0'], {
      env: { ...env, MEMORY_DATA_DIR: join(folder.path, 'data') },
    });
    expect(code).toBe(2);
    expect(stderr).toContain('requires a key');
    expect(stderr).toContain('MEMORY_ADAPTER_KEY');
    expect(stderr).toContain('--allow-unauthenticated');
  });

  test('an API key that is not a valid header value is rejected by the name of its variable', async () => {
    const { code, stderr } = await cli(['memory-adapter', 'serve'], { env: { MEMORY_ADAPTER_KEY: 'a b' } });
    expect([code, stderr]).toEqual([2, expect.stringContaining('MEMORY_ADAPTER_KEY must be printable')]);
    expect(stderr).not.toContain('a b');
  });

  test('--allow-unauthenticated serves other addresses without a key, and the banner says so', async () => {
    await using running = await adapter(['--host', '0.0.0.0', '--allow-unauthenticated']);
    expect(running.stderr).toContain('warning   the mcp port requires no key');
    const { result } = await post(`${running.url}/mcp`, callMessage('store_episodic', TURN));
    expect(result.structuredContent).toEqual(STORED);
  });

  test('the memory services print no warning with a required key', () => {
    expect(guarded.stderr).not.toContain('warning');
    expect(guarded.stderr).not.toContain(KEY);
  });
});

describe('the API key of the memory adapter', () => {
  const message = callMessage('store_episodic', TURN);

  test.each([
    ['memory-adapter', ['--host', '0.0.0.0']],
    ['memory', ['--backend-port', '0']],
  ] as const)('%s serve %j answers 401 without the API key and with a wrong one', async (command, args) => {
    await using folder = await temporaryFolder();
    await using own =
      command === 'memory-adapter'
        ? undefined
        : await service([command, 'serve', '--port', '0', ...args], {
            env: { MEMORY_DATA_DIR: join(folder.path, 'data'), MEMORY_ADAPTER_KEY: KEY },
          });
    const running = own ?? guarded;
    const url = addressOf(running, 'mcp');
    const before = backend.seen.length;
    const wrong: Record<string, string>[] = [
      {},
      { authorization: 'Bearer adapter-key-2' },
      { authorization: `Basic ${KEY}` },
    ];
    for (const headers of wrong) {
      const refused = await post(url, message, headers);
      expect(refused.status).toBe(401);
      expect(refused.headers.get('www-authenticate')).toBe('Bearer');
      expect(refused.error.message).toContain('bearer token');
      expect(refused.text).not.toContain('adapter-key');
    }
    expect((await fetch(url)).status).toBe(401);
    expect(backend.seen.length).toBe(before);
    expect((await fetch(new URL('/health', url))).status).toBe(200);
    const { status, result } = await post(url, message, { authorization: `Bearer ${KEY}` });
    expect([status, result.structuredContent.sessionId]).toEqual([200, 's']);
  });

  test("a gateway sends the adapter's API key with requestHeaderModifier in place of the client's header", async () => {
    const yaml = `
gateways:
  default:
    port: 0
    routes:
      - policies:
          requestHeaderModifier: { set: { authorization: "Bearer $MEMORY_ADAPTER_KEY" } }
        backends: [{ mcp: { targets: [{ name: memory, mcp: { host: "${guarded.url}/mcp" } }] } }]
`;
    await using front = await gateway(yaml, { env: { MEMORY_ADAPTER_KEY: KEY } });
    const session = await openSession(`${front.url}/mcp`, { authorization: 'Bearer of-the-client' });
    const { result } = await session.request('tools/call', { name: 'store_episodic', arguments: TURN });
    expect(result.structuredContent).toEqual(STORED);
    expect(backend.seen.at(-1)?.headers.authorization).toBe('Bearer k3y');
  });
});
