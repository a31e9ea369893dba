import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openSqliteStore } from '../../src/adapter/memory/sqlite/open.ts';
import { recordingLog } from '../adapter/memory/recording-log.ts';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { gateway } from '../kit/gateway.ts';
import { startIdp } from '../kit/idp.ts';
import { INITIALIZE, openSession } from '../kit/mcp.ts';
import { callMessage } from '../kit/memory-adapter.ts';
import { addressOf } from '../kit/memory-processes.ts';
import { agctl, service } from '../kit/process.ts';

const store = (content: string) => ({
  name: 'store_episodic',
  arguments: { sessionId: 's', role: 'user', content },
});

test('a gateway sets the namespace from a claim, and no client can choose another one', async () => {
  await using folder = await temporaryFolder();
  await using idp = await startIdp();
  await using memory = await service(['memory', 'serve', '--port', '0', '--backend-port', '0'], {
    env: {
      MEMORY_DATA_DIR: join(folder.path, 'data'),
      MEMORY_API_KEY: 'api-key',
      MEMORY_ADAPTER_KEY: 'adapter-key',
      MEMORY_NAMESPACES: 'required',
    },
  });
  const yaml = `
gateways:
  default:
    port: 0
    routes:
      - policies:
          mcpAuthentication:
            mode: strict
            issuer: ${idp.issuer}
            audiences: [mcp-client]
            provider: { idpx: {} }
            resourceMetadata: { resource: "https://memory.example.com/mcp" }
          requestHeaderModifier: { set: { authorization: "Bearer $MEMORY_ADAPTER_KEY" } }
          transformations:
            request: { set: { x-memory-namespace: jwt.sub } }
        backends: [{ mcp: { targets: [{ name: memory, mcp: { host: "${addressOf(memory, 'mcp')}" } }] } }]
`;
  await using front = await gateway(yaml, { env: { MEMORY_ADAPTER_KEY: 'adapter-key' } });
  const as = (sub: string | undefined, more: Record<string, string> = {}) =>
    openSession(`${front.url}/mcp`, { authorization: `Bearer ${idp.token({ sub })}`, ...more });
  const alice = await as('alice');
  const bob = await as('auth0|bob', { 'x-memory-namespace': 'alice' });
  for (const session of [alice, bob]) {
    const { result } = await session.request('tools/call', store('of the caller'));
    expect(result.structuredContent).toMatchObject({ sessionId: 's' });
  }
  const turns = async (namespace: string) => {
    const response = await fetch(`${addressOf(memory, 'api')}/sessions/s/turns`, {
      headers: { authorization: 'Bearer api-key', 'x-memory-namespace': namespace },
    });
    return ((await response.json()) as { turns?: unknown[] }).turns?.length ?? 0;
  };
  expect([await turns('alice'), await turns('auth0|bob'), await turns('default')]).toEqual([1, 1, 0]);
  expect(memory.stderr).toContain(
    '  embedder  builtin, which compares words\n  keys      none of namespaces: each call must name one (MEMORY_NAMESPACES)\n',
  );
});

test('memory serve with keys of namespaces needs no other key, and prints none', async () => {
  await using folder = await temporaryFolder();
  const keys = join(folder.path, 'keys.yaml');
  writeFileSync(keys, 'alice: alice-key\n');
  await using memory = await service(['memory', 'serve', '--port', '0', '--backend-port', '0'], {
    env: { MEMORY_DATA_DIR: join(folder.path, 'data'), MEMORY_NAMESPACE_KEYS: keys },
  });
  const call = async (headers: Record<string, string>) => {
    const response = await fetch(addressOf(memory, 'mcp'), {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
      body: JSON.stringify(callMessage('store_episodic', store('x').arguments)),
    });
    return [response.status, await response.text()] as const;
  };
  expect((await call({}))[0]).toBe(401);
  const [status, text] = await call({ authorization: 'Bearer alice-key' });
  expect(status).toBe(200);
  expect(text).toContain('createdAt');
  const api = (headers: Record<string, string>) => fetch(`${addressOf(memory, 'api')}/stats`, { headers });
  expect((await api({})).status).toBe(401);
  const stats = await (await api({ authorization: 'Bearer alice-key' })).json();
  expect(stats).toMatchObject({ turns: 1 });
  expect(memory.stderr).not.toContain('alice-key');
  expect(memory.stderr).toContain('  keys      each namespace has its own (MEMORY_NAMESPACE_KEYS)\n');
});

test('memory-adapter stdio --namespace puts every call in that namespace', async () => {
  await using folder = await temporaryFolder();
  const input = [
    INITIALIZE,
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    callMessage('store_episodic', store('x').arguments),
  ]
    .map((message) => `${JSON.stringify(message)}\n`)
    .join('');
  const args = ['memory-adapter', 'stdio', '--embedded', '--data', join(folder.path, 'data')];
  const { stdout } = await agctl([...args, '--namespace', 'alice'], { input });
  expect(stdout).toContain('createdAt');
  const data = await openSqliteStore({ dataDir: join(folder.path, 'data'), log: recordingLog() });
  expect([(await data.stats()).turns, (await data.namespace('alice').stats()).turns]).toEqual([0, 1]);
  await data.close();
});

test.each([
  [['memory-adapter', 'stdio', '--namespace', 'a b'], {}, '--namespace: expected 1 to 80'],
  [
    ['memory-backend', 'serve', '--port', '0'],
    { MEMORY_NAMESPACES: 'yes' },
    'MEMORY_NAMESPACES: expected `required`',
  ],
  [
    ['memory-backend', 'serve', '--port', '0'],
    { MEMORY_NAMESPACE_KEYS: 'none.yaml' },
    'none.yaml: cannot be read',
  ],
  [
    ['memory-adapter', 'serve', '--port', '0'],
    { MEMORY_NAMESPACE_KEYS: 'none.yaml' },
    'none.yaml: cannot be read',
  ],
])('%j with %j is refused at the start', async (args, env, message) => {
  await using folder = await temporaryFolder();
  const { code, stderr } = await cli(args, {
    cwd: folder.path,
    env: { ...env, MEMORY_DATA_DIR: folder.path },
  });
  expect(code).toBe(2);
  expect(stderr).toContain(message);
});
