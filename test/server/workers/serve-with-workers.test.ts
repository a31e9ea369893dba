import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { cli } from '../../kit/cli.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { AUDIENCE, startIdp } from '../../kit/idp.ts';
import { isAlive } from '../../kit/is-alive.ts';
import { agctl, type ServeProcess, serve } from '../../kit/process.ts';
import { routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';
import { freshly } from '../../kit/workers.ts';

const config = (routes: readonly object[], more: object = {}): string =>
  JSON.stringify({
    ...(JSON.parse(routesConfig(routes)) as object),
    config: { workers: 2, ...more },
  });
const HELLO = config([{ policies: { directResponse: { status: 200, body: 'hello' } } }]);

/** A gateway whose only route never gets an answer; `called` resolves when it is waiting for one. */
async function waiting(more: object = {}) {
  const { promise: called, resolve } = Promise.withResolvers<void>();
  const backend = await httpUpstream(() => resolve());
  const running = await serve(config([{ backends: [{ host: backend.address }] }], more));
  return { backend, running, called };
}

/** Process ids of the workers: the children of the process. */
function workersOf({ pid }: ServeProcess): number[] {
  return execFileSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map(Number);
}

describe('agctl serve with config.workers', () => {
  test('says how many workers it has, stops none that gets a signal of its process group, and leaves none when it stops', async () => {
    // The name and the numbers in quotes of upstream.
    await using running = await serve(HELLO.replace('"workers":2', '"workerThreads":"2"'));
    expect(running.stderr).toMatch(/^ready in \d+ ms with 2 workers\./m);
    const pids = workersOf(running);
    expect(pids).toHaveLength(2);
    for (const pid of pids)
      for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.kill(pid, signal);
    for (let index = 0; index < 6; index++) expect((await freshly(running.url)).text).toBe('hello');
    expect(pids.every(isAlive)).toBe(true);
    running.kill('SIGTERM');
    expect(await running.finished).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('http.status=200'),
    });
    expect(pids.filter(isAlive)).toEqual([]);
  });

  test('ends its workers at once after a second signal', async () => {
    const { backend, running, called } = await waiting();
    const pids = workersOf(running);
    const reply = freshly(running.url).catch(() => 'lost');
    await called;
    running.kill('SIGTERM');
    await until(() => running.stderr.includes('finishing open requests'));
    // The one that waits for its backend.
    expect(pids.some(isAlive)).toBe(true);
    running.kill('SIGTERM');
    await running.finished;
    await until(() => !pids.some(isAlive), 2_000);
    expect(await reply).toBe('lost');
    await backend[Symbol.asyncDispose]();
  });

  test('that is killed takes its workers with it, and leaves no folder of sockets', async () => {
    await using folder = await temporaryFolder();
    await using running = await serve(HELLO, { env: { TMPDIR: folder.path } });
    const pids = workersOf(running);
    expect(readdirSync(folder.path)).toHaveLength(1);
    running.kill('SIGKILL');
    await running.finished;
    await until(() => !pids.some(isAlive) && readdirSync(folder.path).length === 0);
  });

  test('reports a port that is in use at its place in the file', async () => {
    await using taken = await httpUpstream();
    const port = Number(taken.address.split(':').at(-1));
    const folder = await temporaryFolder();
    const file = join(folder.path, 'c.yaml');
    writeFileSync(file, HELLO.replace('"port":0', `"port":${port}`));
    const { code, stderr } = await agctl(['serve', '-f', file]);
    expect([code, stderr]).toEqual([1, expect.stringContaining(`AGW0401]: port ${port} is already in use`)]);
    await folder.remove();
  });

  test('reports both names of the number of workers', async () => {
    const { code, stderr } = await cli(['serve', '-f', '-'], {
      input: JSON.stringify({ ...(JSON.parse(HELLO) as object), config: { workers: 2, workerThreads: '2' } }),
    });
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('`workers` and `workerThreads` cannot be used together'),
    ]);
  });

  test('recovers from more connections than it may have open files', async () => {
    await using running = await serve(HELLO, { descriptors: 64 });
    // Connections on the way to a worker are lost when it has no descriptor for them.
    await until(async () => {
      const agent = new Agent({ keepAlive: true, maxSockets: 150 });
      await Promise.allSettled(Array.from({ length: 500 }, () => send(running.url, { agent })));
      agent.destroy();
      return running.stderr.includes('could not take connections');
    }, 40_000);
    await until(() =>
      freshly(running.url).then(
        ({ text }) => text === 'hello',
        () => false,
      ),
    );
  });

  test.each([
    ['does not exist', '/nonexistent', 'ENOENT'],
    ['has a long path', `/tmp/${'x'.repeat(120)}`, 'is too long'],
  ])('says why it does not start if the folder for temporary files %s', async (_what, TMPDIR, reason) => {
    if (reason !== 'ENOENT') mkdirSync(TMPDIR, { recursive: true });
    const { code, stderr } = await agctl(['serve', '-f', '-'], { input: HELLO, env: { TMPDIR } });
    expect([code, stderr]).toEqual([1, expect.stringContaining(reason)]);
    expect(stderr).toContain('set TMPDIR to a writable folder');
    if (reason !== 'ENOENT') rmSync(TMPDIR, { recursive: true });
  });

  test('starts workers again after the folder of their sockets was removed', async () => {
    await using folder = await temporaryFolder();
    await using running = await serve(HELLO, { env: { TMPDIR: folder.path } });
    const [sockets = ''] = readdirSync(folder.path);
    rmSync(join(folder.path, sockets), { recursive: true });
    process.kill(workersOf(running)[0] as number, 'SIGKILL');
    await until(() => running.stderr.includes('a worker was replaced'), 20_000);
    running.kill('SIGTERM');
    await running.finished;
    expect(readdirSync(folder.path)).toEqual([]);
  });

  test('reads changed key files in all workers', async () => {
    await using folder = await temporaryFolder();
    await using idp = await startIdp();
    const keys = join(folder.path, 'keys.json');
    writeFileSync(keys, JSON.stringify({ keys: [idp.key.jwk] }));
    const mcpAuthentication = {
      issuer: idp.issuer,
      audiences: [AUDIENCE],
      jwks: { file: keys },
      resourceMetadata: { resource: 'http://localhost/mcp' },
    };
    const policies = { mcpAuthentication, directResponse: { body: 'in' } };
    await using running = await serve(config([{ policies }]));
    const headers = { authorization: `Bearer ${idp.token()}` };
    const statuses = async (): Promise<number[]> => {
      const replies = await Promise.all(Array.from({ length: 6 }, () => freshly(running.url, { headers })));
      return [...new Set(replies.map(({ status }) => status))];
    };
    expect(await statuses()).toEqual([200]);
    writeFileSync(keys, '{"keys":[]}');
    await until(async () => (await statuses()).join() === '401');
  });
});
