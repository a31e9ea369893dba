import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Writable } from 'node:stream';
import { Client as Client2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { describe, expect, test } from 'vitest';
import { openDatabase } from '../../src/adapter/memory/sqlite/database.ts';
import { main } from '../../src/cli/main.ts';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { type Json, post } from '../kit/mcp.ts';
import { callMessage } from '../kit/memory-adapter.ts';
import { writeFiles } from '../kit/memory-backend.ts';
import { addressOf, memoryServe } from '../kit/memory-processes.ts';
import { occupy } from '../kit/ports.ts';
import { AGCTL, agctl, type ServeProcess, service } from '../kit/process.ts';
import { until } from '../kit/until.ts';
import { verifies } from '../kit/verifies.ts';

const json = async (url: string, init?: RequestInit): Promise<Json> => (await fetch(url, init)).json();
const syncedBy = (memory: ServeProcess) =>
  until(async () => (await json(`${addressOf(memory, 'api')}/stats`)).ready);

/** What a client writes to stdin. */
const sessionOf = (...requests: Json[]): string =>
  [
    {
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'a', version: '1' } },
    },
    { method: 'notifications/initialized' },
    ...requests,
  ]
    .map((line) => `${JSON.stringify({ jsonrpc: '2.0', ...line })}\n`)
    .join('');

describe('agctl memory serve', () => {
  verifies(
    ['memory.service.5', 'memory.service.5.idempotent', 'memory.service.3'],
    'memory serve reads the docs folder at every start, keeps stored data and embeds nothing twice',
    async () => {
      await using folder = await temporaryFolder();
      writeFiles(join(folder.path, 'docs'), {
        'a.md': '# A\n\nAlpha.',
        'deep/er/b.mdx': 'import X from "x"\n\n# B\n\n<X/>Beta.',
        'c.txt': 'Gamma.',
      });
      {
        await using memory = await memoryServe(folder.path);
        await syncedBy(memory);
        const { sync } = await json(`${addressOf(memory, 'api')}/ingest/status`);
        expect(sync).toMatchObject({ state: 'done', total: 2, added: 2, failed: 0 });
        const turn = { sessionId: 's', role: 'user', content: 'kept' };
        const { result } = await post(addressOf(memory, 'mcp'), callMessage('store_episodic', turn));
        expect(result.structuredContent.id).toEqual(expect.any(String));
        // No clean shutdown: acknowledged writes are on disk.
        memory.kill('SIGKILL');
        await memory.finished;
      }
      writeFiles(join(folder.path, 'docs'), { 'new.md': '# New\n\nDelta.' });
      await using again = await memoryServe(folder.path);
      await syncedBy(again);
      const { sync } = await json(`${addressOf(again, 'api')}/ingest/status`);
      expect(sync).toMatchObject({ state: 'done', added: 1, unchanged: 2, embedded: 1 });
      const { turns } = await json(`${addressOf(again, 'api')}/sessions/s/turns`);
      expect(turns.map(({ content }: Json) => content)).toEqual(['kept']);
      expect((await fetch(addressOf(again, 'ui'))).status).toBe(200);
      expect(again.stdout).toBe('');
    },
  );

  verifies('memory.service.3', 'memory-backend serve listens on 3006 by default', async () => {
    await using folder = await temporaryFolder();
    const { server, taken } = await occupy(3006);
    const { code, stderr } = await cli(['memory-backend', 'serve'], {
      env: { MEMORY_DATA_DIR: folder.path },
    });
    if (taken) server.close();
    expect([code, stderr]).toEqual([1, expect.stringContaining('port 3006 is already in use')]);
  });

  test('memory serve ends cleanly on SIGTERM under load, and each acknowledged write is there once after a restart', async () => {
    await using folder = await temporaryFolder();
    await using first = await memoryServe(folder.path);
    const acknowledged: string[] = [];
    const writer = async (name: number): Promise<void> => {
      for (let index = 0; ; index += 1) {
        const content = `${name}-${index}`;
        const turn = { sessionId: 's', role: 'user', content };
        const answer = await post(addressOf(first, 'mcp'), callMessage('store_episodic', turn)).catch(
          () => undefined,
        );
        if (answer?.result?.structuredContent === undefined) return;
        acknowledged.push(content);
      }
    };
    const writers = Array.from({ length: 8 }, (_, name) => writer(name));
    await until(() => acknowledged.length > 40);
    first.kill('SIGTERM');
    await Promise.all(writers);
    expect(await first.finished).toMatchObject({ code: 0, signal: null });
    await using second = await memoryServe(folder.path);
    const { turns } = await json(`${addressOf(second, 'api')}/sessions/s/turns?limit=500`);
    const kept = turns.map(({ content }: Json) => content);
    expect(kept).toEqual([...new Set(kept)]);
    expect(acknowledged.filter((content) => !kept.includes(content))).toEqual([]);
  });

  test('a second memory serve on the same folder is rejected with an error that names the first process', async () => {
    await using folder = await temporaryFolder();
    await using first = await memoryServe(folder.path);
    const { code, stderr } = await cli([
      ...['memory-backend', 'serve', '--port', '0', '--data', join(folder.path, 'data')],
    ]);
    expect(code).toBe(1);
    expect(stderr).toContain(`in use by process ${first.pid}`);
    // Clients that start their servers join it.
    const turn = { sessionId: 's', role: 'user', content: 'over the socket' };
    const { stdout } = await agctl(
      ['memory-adapter', 'stdio', '--embedded', '--data', join(folder.path, 'data')],
      {
        input: sessionOf({
          id: 2,
          method: 'tools/call',
          params: { name: 'store_episodic', arguments: turn },
        }),
      },
    );
    expect(stdout).toContain('"seq":1');
    const { turns } = await json(`${addressOf(first, 'api')}/sessions/s/turns`);
    expect(turns).toMatchObject([{ content: 'over the socket' }]);
  });

  test.each<[Record<string, string>, string]>([
    [
      { MEMORY_DATABASE_URL: 'mysql://u:pw-canary@127.0.0.1:1/x' },
      'expected `postgres://user:password@host:5432',
    ],
    [{ MEMORY_DATABASE_URL: 'postgres://u:pw-canary#1@127.0.0.1:1/x' }, 'in a password, write `@` as `%40`'],
    [{ MEMORY_DATABASE_URL: 'postgres://u:pw-canary%zz@127.0.0.1:1/x' }, 'in a password, write `@` as `%40`'],
    [{ MEMORY_DATA_DIR: 'a-file' }, 'its folder is a file, or below one: name a folder with --data'],
    [{ MEMORY_DATA_DIR: 'a-file/inside' }, 'its folder is a file, or below one: name a folder with --data'],
    // A recursive `mkdir` of Node.js never returns there; macOS has no such folder.
    [
      { MEMORY_DATA_DIR: '/proc/x/y' },
      process.platform === 'linux' ? 'its folder cannot be created there' : '',
    ],
  ])('a store of %j is exit code 1 and says what was expected', async (env, message) => {
    await using folder = await temporaryFolder();
    writeFileSync(join(folder.path, 'a-file'), '');
    const { code, stderr } = await cli(['memory-backend', 'serve', '--port', '0'], { env, cwd: folder.path });
    expect([code, stderr]).toEqual([1, expect.stringContaining(message)]);
    expect(stderr).not.toContain('pw-canary');
  });

  test('memory serve with a port in use is exit code 1, names the option that changes it, and leaves no store open', async () => {
    await using folder = await temporaryFolder();
    await using first = await memoryServe(join(folder.path, 'first'));
    const port = new URL(addressOf(first, 'api')).port;
    const data = join(folder.path, 'second');
    const { code, stderr } = await cli(['memory-backend', 'serve', '--port', port, '--data', data]);
    expect([code, stderr]).toEqual([1, expect.stringContaining(`port ${port} is already in use`)]);
    const both = await cli(['memory', 'serve', '--port', '0', '--backend-port', port, '--data', data]);
    expect([both.code, both.stderr]).toEqual([
      1,
      expect.stringContaining('--backend-port or MEMORY_BACKEND_PORT'),
    ]);
    // Its folder of documents is missing, which it reports.
    await using memory = await service(['memory-backend', 'serve', '--port', '0'], {
      env: {
        MEMORY_DATA_DIR: data,
        MEMORY_DOCS_DIR: join(folder.path, 'docs'),
        MEMORY_EXTRACTION_URL: 'http://127.0.0.1:9/v1',
        MEMORY_EXTRACTION_MODEL: 'small',
      },
    });
    await syncedBy(memory);
    const { sync } = await json(`${addressOf(memory, 'api')}/ingest/status`);
    expect(sync.errors[0].message).toContain('docs folder');
    await until(() => memory.stderr.includes('\twarn\tmemory::sync\t'));
    expect(memory.stderr + memory.stdout).toContain(
      'by small, of documents; MEMORY_INDEX_CHAT=true adds turns',
    );
  });

  test.each([
    [['memory', 'serve', '--host', '0.0.0.0'], {}, 'listening on 0.0.0.0 requires a key'],
    [['memory-backend', 'serve', '--host', '::'], {}, 'listening on :: requires a key'],
    [['memory-backend', 'serve', '--port', 'x'], {}, '--port must be a port'],
    [['memory-backend', 'serve'], { MEMORY_INDEX_CHAT: 'maybe' }, 'MEMORY_INDEX_CHAT'],
    [['memory-backend', 'serve'], { EMBEDDINGS_URL: 'ftp://x' }, 'EMBEDDINGS_URL'],
    [['memory-backend', 'serve', '--docs', '/no/such'], {}, '--docs: no such folder: /no/such'],
    [['memory', 'serve', '--backend-port', 'x'], {}, '--backend-port must be a port'],
    [['memory'], {}, undefined],
  ])('%j %j is exit code 2 for wrong usage and 0 for help', async (args, env, message) => {
    await using folder = await temporaryFolder();
    const data = join(folder.path, 'data');
    let said = '';
    const stream = new Writable({
      write: (chunk, _encoding, done) => {
        said += chunk;
        done();
      },
    });
    const context = { stdout: stream, stderr: stream, env: { ...env, MEMORY_DATA_DIR: data }, cwd: '/' };
    expect(await main(args, context)).toBe(message === undefined ? 0 : 2);
    expect(said).toContain(message ?? 'serve');
    expect(existsSync(data)).toBe(false);
  });
});

describe('agctl memory-adapter stdio --embedded', () => {
  // The test below has clients of SDK 2.
  test('memory-adapter stdio --embedded serves a desktop client of SDK 1 with its own store', async () => {
    await using folder = await temporaryFolder();
    writeFiles(join(folder.path, 'docs'), { 'a.md': '# Otters\n\nOtters hold hands when they sleep.' });
    const args = ['--data', join(folder.path, 'data'), '--docs', join(folder.path, 'docs')];
    const transport = new Stdio1({
      command: process.execPath,
      args: [AGCTL, 'memory-adapter', 'stdio', '--embedded', ...args],
      stderr: 'pipe',
      env: { MEMORY_AGENT_ID: 'desktop' },
    });
    const noise: unknown[] = [];
    const client = new Client1({ name: 'desktop', version: '1' });
    client.onerror = (error) => noise.push(error);
    await client.connect(transport);
    const { tools } = await client.listTools();
    expect(tools[0]?.description).toContain('synonyms are not known');
    const turn = { sessionId: 's', role: 'user', content: 'hello' };
    const stored = (await client.callTool({ name: 'store_episodic', arguments: turn })) as Json;
    expect(stored.structuredContent).toMatchObject({ agentId: 'desktop', seq: 1 });
    await until(async () => {
      const found = (await client.callTool({
        name: 'search_knowledge',
        arguments: { query: 'otters sleep hands' },
      })) as Json;
      return found.structuredContent.count === 1;
    });
    await client.close();
    // stdout had only protocol messages.
    expect(noise).toEqual([]);
    await until(() => !existsSync(join(folder.path, 'data', 'memory.db.lock')));
  });

  test('stdio clients of one memory share it, one of them goes on when its owner is killed, and nothing acknowledged is lost', async () => {
    await using folder = await temporaryFolder();
    const data = join(folder.path, 'data');
    const start = (...options: string[]) => {
      const transport = new Stdio2({
        command: process.execPath,
        args: [AGCTL, 'memory-adapter', 'stdio', '--embedded', '--data', data, ...options],
        stderr: 'pipe',
      });
      const client = new Client2({ name: 'desktop', version: '1' });
      const acknowledged: string[] = [];
      const store = async (content: string) => {
        const turn = { sessionId: 's', role: 'user', content };
        const stored = (await client.callTool({ name: 'store_episodic', arguments: turn })) as Json;
        if (stored.isError !== true) acknowledged.push(content);
      };
      return { client, transport, acknowledged, store, connected: client.connect(transport) };
    };
    const both = [start(), start()];
    await Promise.all(both.map(({ connected }) => connected));
    const lock = JSON.parse(readFileSync(join(data, 'memory.db.lock'), 'utf8'));
    const owner = both.find(({ transport }) => transport.pid === lock.pid);
    const other = both.find((one) => one !== owner);
    if (owner === undefined || other === undefined) throw new Error('the owner is none of both');
    expect(statSync(join(data, 'socket')).mode & 0o777).toBe(0o700);
    expect(statSync(join(data, 'socket/memory.sock')).mode & 0o777).toBe(0o600);
    // Another folder of documents is no setting that the owner could have too.
    const third = start('--docs', folder.path);
    const refused = await third.connected.catch((error: Error) => error.message);
    expect(refused).toContain(`in use by process ${lock.pid}, which has another value of --docs`);
    await third.client.close();
    const { tools } = await other.client.listTools();
    expect(tools[0]?.description).toContain('synonyms are not known');
    await owner.store('of the owner');
    /** Writes while the owner ends. No call fails: those that were cut are repeated, and stored once. */
    const writesWhile = async ({ store, acknowledged }: typeof other, end: () => unknown): Promise<void> => {
      let writes = 0;
      const writing = async (): Promise<void> => {
        while (writes < 60) await store(`turn ${writes++}`);
      };
      const writers = Array.from({ length: 4 }, writing);
      await until(() => acknowledged.length > 20);
      await Promise.all([...writers, end()]);
      expect(acknowledged).toHaveLength(60);
    };
    const ownerNow = (): unknown => JSON.parse(readFileSync(join(data, 'memory.db.lock'), 'utf8')).pid;
    await writesWhile(other, () => process.kill(lock.pid, 'SIGKILL'));
    await owner.client.close();
    expect(ownerNow()).toBe(other.transport.pid);
    const last = start();
    await last.connected;
    await writesWhile(last, () => other.client.close());
    expect(ownerNow()).toBe(last.transport.pid);
    await last.client.close();
    await until(() => !existsSync(join(data, 'memory.db.lock')));
    expect(existsSync(join(data, 'socket/memory.sock'))).toBe(false);
    using database = new DatabaseSync(join(data, 'memory.db'));
    const turns = database.prepare('SELECT content FROM memory_chat_history').all() as Json[];
    const kept = turns.map(({ content }) => content).sort();
    expect(kept).toEqual([owner, other, last].flatMap(({ acknowledged }) => acknowledged).sort());
  });

  test('memory-adapter stdio that cannot start says so on stderr and ends with stdin', async () => {
    const request = { jsonrpc: '2.0', id: 'a', method: 'tools/list' };
    const input = `${JSON.stringify(request)}\n${JSON.stringify({ ...request, id: undefined })}\n`;
    const { code, stdout, stderr } = await agctl(
      ['memory-adapter', 'stdio', '--embedded', '--docs', '/nowhere'],
      { input },
    );
    const message = '--docs: no such folder: /nowhere';
    expect([code, JSON.parse(stdout)]).toEqual([
      2,
      { jsonrpc: '2.0', id: 'a', error: { code: -32_000, message } },
    ]);
    expect(stderr).toContain(message);
  });

  test.each([
    [
      'that this user may not write',
      0o555,
      'cannot be written: allow this user to write the file and its folder',
    ],
    ['that this user may not read', 0o000, 'this user must be able to read and write it'],
  ])('memory-adapter stdio --embedded says what is wrong with a folder %s', async (_, mode, message) => {
    await using folder = await temporaryFolder();
    const data = join(folder.path, 'data');
    openDatabase(join(data, 'memory.db')).close();
    chmodSync(folder.path, 0o755);
    chmodSync(join(data, 'memory.db'), 0o444);
    chmodSync(data, mode);
    const { stderr } = spawnSync(
      process.execPath,
      [AGCTL, 'memory-adapter', 'stdio', '--embedded', '--data', data],
      // What is said of permissions is not said to root.
      { encoding: 'utf8', env: {}, ...(process.geteuid?.() === 0 && { uid: 65_534, gid: 65_534 }) },
    );
    chmodSync(data, 0o755);
    expect(stderr).toContain(message);
    expect(stderr).not.toContain('For several clients');
  });

  test('memory-adapter stdio --embedded answers requests sent before stdin ended, then exits', async () => {
    await using folder = await temporaryFolder();
    const turn = { sessionId: 's', role: 'user', content: 'hello' };
    const call = { method: 'tools/call', params: { name: 'store_episodic', arguments: turn } };
    // Lines that are too long fail alone. Some clients write the id after the parameters, as that of Python does.
    const long = { title: 't', content: 'x'.repeat(13 * 2 ** 20), id: 'nested' };
    const tooLong = [
      { id: 'first \u00e9', ...call, params: long },
      { ...call, params: long, id: 7 },
      { id: 8, result: long },
    ].map((message) => JSON.stringify({ jsonrpc: '2.0', ...message }));
    const { code, stdout, stderr } = await agctl(
      ['memory-adapter', 'stdio', '--embedded', '--data', join(folder.path, 'data')],
      { input: `${sessionOf({ id: 2, ...call })}${tooLong.join('\n')}\n${sessionOf({ id: 3, ...call })}` },
    );
    const answers: Json[] = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const refused = answers.filter(({ error }) => error?.message.includes('more than 12648448 bytes'));
    expect(refused.map(({ id }) => id)).toEqual(['first \u00e9', 7, null]);
    expect(stderr.match(/a message of more than/g)).toHaveLength(3);
    const stored = answers.filter(({ id }) => id === 2 || id === 3);
    const seqs = stored.map(({ result }) => result.structuredContent.seq);
    expect([code, seqs.sort()]).toEqual([0, [1, 2]]);
  });

  // modelcontextprotocol/rust-sdk#825: a client waits for the answer to what is not read.
  test('memory-adapter stdio answers what is no message, and reads what follows', async () => {
    await using folder = await temporaryFolder();
    const ping = '{"jsonrpc":"2.0","id":ID,"method":"ping"}';
    const lines = [
      `\ufeff${ping.replace('ID', '"bom"')}\r`,
      ping.replace('ID', '"null"').replace('}', ',"params":null}'),
      'hello',
      `[${ping.replace('ID', '1')}]`,
      ping.replace('ID', '1.5'),
      ping.replace('ID', 'null'),
      ping.replace('ID', '"old"').replace('2.0', '1.0'),
      ping.replace('ID', '"list"').replace('}', ',"params":[]}'),
      '{"jsonrpc":"2.0","method":"notifications/cancelled","params":5}',
      '{"jsonrpc":"2.0","id":1.5,"result":{}}',
      '',
      ping.replace('ID', '"last"'),
    ];
    const { code, stdout } = await agctl(
      ['memory-adapter', 'stdio', '--embedded', '--data', join(folder.path, 'data')],
      { input: sessionOf({ id: 2, method: 'ping' }) + lines.map((line) => `${line}\n`).join('') },
    );
    const answers: Json[] = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const said = answers.map(({ id, error }) => `${id} ${error?.code ?? 'ok'}`);
    expect(code).toBe(0);
    expect(said.filter((answer) => answer.endsWith('ok')).sort()).toEqual([
      '1 ok',
      '2 ok',
      'bom ok',
      'last ok',
      'null ok',
    ]);
    expect(said.filter((answer) => !answer.endsWith('ok'))).toEqual([
      'null -32700',
      'null -32600',
      'null -32600',
      'null -32600',
      'old -32600',
      'list -32600',
    ]);
  });
});
