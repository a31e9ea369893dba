import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { AT_ONCE } from '../../../../kit/at-once.ts';
import { chaos, mcpConfig } from '../../../../kit/config.ts';
import { temporaryFolder } from '../../../../kit/folder.ts';
import { gateway } from '../../../../kit/gateway.ts';
import { isAlive } from '../../../../kit/is-alive.ts';
import { INITIALIZE, type McpReply, type McpSession, openSession, post } from '../../../../kit/mcp.ts';
import { until } from '../../../../kit/until.ts';

const { path: folder, remove } = await temporaryFolder();
afterAll(remove);

/** The answer to `initialize` with a single target that runs this command, and how long it took. */
async function startWith(stdio: object): Promise<McpReply & { readonly ms: number; readonly log: string }> {
  await using gate = await gateway(mcpConfig([{ name: 'bad', stdio }]), { folder });
  const started = performance.now();
  const answer = await post(`${gate.url}/mcp`, INITIALIZE);
  const ms = performance.now() - started;
  const log = gate.log.find((line) => /\twarn\t.*target is not available\ttarget="bad"/.test(line)) ?? '';
  return { ...answer, ms, log };
}

describe('a stdio target that does not start', () => {
  const notExecutable = join(folder, 'not-executable');
  writeFileSync(notExecutable, '#!/bin/sh\n');
  chmodSync(notExecutable, 0o644);

  test.each([
    [
      ': failed to start stdio server: command not found',
      { cmd: 'no-such-command' },
      String.raw`command not found: \"no-such-command\" (searched on PATH`,
    ],
    [
      ': failed to start stdio server: the command is not executable',
      { cmd: notExecutable },
      String.raw`\"${notExecutable}\" is not executable`,
    ],
    [
      ': failed to start stdio server: its arguments and variables are too large',
      { cmd: process.execPath, args: ['-e', `/*${'x'.repeat(3_000_000)}*/`] },
      'too large for the system, often over 128 KiB for one (stdio.args, stdio.env)',
    ],
    [
      ': failed to start stdio server: an argument or variable has a null byte',
      { cmd: process.execPath, env: { A: 'a\0b' } },
      'null byte (stdio.args, stdio.env)',
    ],
    [' exited with code 7', chaos('x', '--exit=7').stdio, 'last on stderr: first line | the last words'],
    [' exited with code 0', chaos('x', '--exit=0').stdio, 'last on stderr: first line | the last words'],
    [': not today', chaos('x', '--refuse').stdio],
    [
      ': its initialize result has no protocolVersion: expected one of 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25',
      { cmd: 'sh', args: ['-c', 'read l; echo \'{"jsonrpc":"2.0","id":1,"result":{}}\'; cat'] },
    ],
  ])('a stdio target that does not start is explained: %s', async (reason, stdio, detail = '') => {
    const { status, headers, error, ms, log } = await startWith(stdio);
    expect(status).toBe(500);
    expect(headers.get('mcp-session-id')).toBeNull();
    expect(error.code).toBe(-32603);
    expect(error.message).toBe(`failed to create session: target "bad"${reason}`);
    expect(log).toContain(detail);
    expect(log.length).toBeLessThan(1_000);
    expect(ms).toBeLessThan(AT_ONCE);
  });
});

describe('a command that does not exist', () => {
  test('a missing command is logged when the gateway starts, an existing one is not', async () => {
    const targets = [{ name: 'gone', stdio: { cmd: 'no-such-command' } }, chaos('there')];
    await using gate = await gateway(mcpConfig(targets));
    const lines = gate.log.filter((line) => line.includes('command of a target was not found'));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/\twarn\t.*target="gone" cmd="no-such-command"/);
  });

  test('a command is looked up in the PATH of its target', async () => {
    const targets = [{ name: 'gone', stdio: { cmd: 'node', env: { PATH: '/nowhere' } } }];
    await using gate = await gateway(mcpConfig(targets));
    expect(gate.log.some((line) => line.includes('target="gone" cmd="node"'))).toBe(true);
    expect((await post(`${gate.url}/mcp`, INITIALIZE)).error.message).toContain('command not found');
  });
});

const pidOf = async (session: McpSession, tool = 'pid'): Promise<number> =>
  Number((await session.request('tools/call', { name: tool })).result.content[0].text);

describe('a child process that exits', () => {
  test.each([
    ['die', { code: 3 }, 'exited with code 3', '; last on stderr: the last words"'],
    ['die', { code: 0, words: 'a\nb\nc\nd' }, 'exited with code 0', '; last on stderr: b | c | d"'],
    ['kill-self', {}, 'was ended by SIGKILL', ''],
  ])(
    'a child process that exits by %s %j fails its call immediately with an error that says how it exited',
    async (name, args, reason, detail) => {
      await using gate = await gateway(mcpConfig([chaos('a')]));
      const session = await openSession(`${gate.url}/mcp`);
      const started = performance.now();
      const other = session.send({ id: 50, method: 'tools/call', params: { name: 'hang' } });
      const { status, error } = await session.request('tools/call', { name, arguments: args });
      expect(performance.now() - started).toBeLessThan(AT_ONCE);
      expect(status).toBe(200);
      expect(error.code).toBe(-32603);
      expect(error.message).toBe(`target "a" ${reason}`);
      // Only the log has the reason.
      const line = gate.log.find((each) => each.includes('target is not available'));
      expect(line).toContain(`${reason}${detail}`);
      // Everything else that waited for it fails with it.
      expect((await other).error.message).toBe(error.message);
    },
  );

  test('a later call restarts and initializes a child process in the same session', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    const session = await openSession(`${gate.url}/mcp`);
    const first = await pidOf(session);
    await session.request('tools/call', { name: 'die' });
    expect(isAlive(first)).toBe(false);
    await until(async () => (await session.request('ping')).result !== undefined);
    expect(await pidOf(session)).not.toBe(first);
    const { result } = await session.request('tools/call', { name: 'received' });
    const lines = JSON.parse(result.content[0].text).map((line: string) => JSON.parse(line));
    expect(lines[0].params).toEqual(INITIALIZE.params);
    expect(lines[1].method).toBe('notifications/initialized');
  });

  test('a child process that exits between calls is restarted by the next call', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    const session = await openSession(`${gate.url}/mcp`);
    const first = await pidOf(session);
    process.kill(first, 'SIGKILL');
    await until(() => gate.log.some((line) => line.includes('was ended by SIGKILL')));
    await until(async () => (await session.request('ping')).result !== undefined);
    expect(await pidOf(session)).not.toBe(first);
  });

  test('a child process that exits after its response still has its response forwarded', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    for (let turn = 0; turn < 5; turn += 1) {
      const session = await openSession(`${gate.url}/mcp`);
      const { result } = await session.request('tools/call', { name: 'answer-and-exit' });
      expect(result.content[0].text).toBe('the last answer');
    }
  });

  test('a child process that exits fails only its own session', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    const [one, two] = [await openSession(`${gate.url}/mcp`), await openSession(`${gate.url}/mcp`)];
    const pid = await pidOf(two);
    await one.request('tools/call', { name: 'die' });
    expect(await pidOf(two)).toBe(pid);
  });

  test('a child process that closes its stdout is treated as exited', async () => {
    await using gate = await gateway(mcpConfig([chaos('a', '--linger')]));
    const session = await openSession(`${gate.url}/mcp`);
    let isAnswered = false;
    const call = session.request('tools/call', { name: 'close-stdout' }).then(() => {
      isAnswered = true;
    });
    call.catch(() => undefined);
    await until(() => isAnswered, 3_000);
  });
});

test('a child process that closes its stdin is ended when it gets a message, and the next call starts another', async () => {
  // bensons/mcp-exec#23: it would never answer.
  const script = `
    const { closeSync, writeSync } = require('node:fs');
    const result = (method, params) => method === 'initialize'
      ? { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } }
      : { content: [{ type: 'text', text: 'called' }] };
    process.stdin.on('data', (text) => {
      for (const line of String(text).trim().split('\\n')) {
        const { id, method, params } = JSON.parse(line);
        if (id === undefined) continue;
        writeSync(1, JSON.stringify({ jsonrpc: '2.0', id, result: result(method, params) }) + '\\n');
        if (method === 'tools/call') process.stdin.destroy(), closeSync(0);
      }
    });
    setInterval(() => undefined, 1000);`;
  await using gate = await gateway(
    mcpConfig([
      { name: 'a', stdio: { cmd: process.execPath, args: ['-e', script.replaceAll('$', '$$$$')] } },
    ]),
  );
  const session = await openSession(`${gate.url}/mcp`);
  const call = () => session.request('tools/call', { name: 't', arguments: {} });
  expect((await call()).result.content[0].text).toBe('called');
  expect((await call()).error.message).toBe('target "a" closed its input');
  await until(async () => (await call()).result !== undefined);
});

describe('stderr of a stdio target', () => {
  test('the error of a stdio target that exits includes the first lines of its last errors on stderr', async () => {
    // What npx writes for a package that does not exist.
    const lines = [
      'npm warn Unknown user config "x".',
      'npm error code E404',
      'npm error 404 Not Found - GET https://registry.example.com/no-such-package - Not found',
      'npm error 404',
      "npm error 404  'no-such-package@*' is not in this registry.",
      'npm error 404',
      'npm error 404 Note that you can also install from a',
      'npm error 404 tarball, folder, http url, or git folder.',
      'npm error A complete log of this run can be found in: /root/.npm/_logs/x.log',
    ];
    // Not in its arguments, which are in the log as well.
    writeFileSync(join(folder, 'npx.sh'), `echo ${JSON.stringify(lines.join('\n'))} >&2; exit 1`);
    const { log } = await startWith({ cmd: 'sh', args: ['npx.sh'] });
    expect(log).toContain('404 Not Found - GET https://registry.example.com/no-such-package');
    expect(log).toContain('A complete log of this run can be found in: /root/.npm/_logs/x.log');
    expect(log.length).toBeLessThan(1_500);
  });

  test('the error of a stdio target that exits includes lines on stderr that arrive after the exit', async () => {
    // A process outside of the group, which writes once the first one has ended.
    const late = 'while kill -0 $0 2>/dev/null; do sleep 0.02; done; echo the cause, late >&2';
    const options = `{ detached: true, stdio: ['ignore', 'ignore', 'inherit'] }`;
    writeFileSync(
      join(folder, 'late.mjs'),
      `import { spawn } from 'node:child_process';
       spawn('sh', ['-c', '${late}', String(process.pid)], ${options}).on('spawn', () => process.exit(1));`,
    );
    const { log } = await startWith({ cmd: process.execPath, args: ['late.mjs'] });
    expect(log).toContain('the cause, late');
  });

  test('stderr of a stdio target is logged line by line, escaped, with the name of the target', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    const session = await openSession(`${gate.url}/mcp`);
    await session.request('tools/call', {
      name: 'die',
      arguments: { words: 'one\n\u001b[31mtwo\u0007\tthree' },
    });
    const lines = gate.log.filter((line) => line.includes('stream="stderr"'));
    expect(lines.map((line) => line.split('\t').slice(1))).toEqual([
      ['info', 'mcp::stdio', 'one', 'target="a" stream="stderr"\n'],
      ['info', 'mcp::stdio', '\\u{1b}[31mtwo\\u{7}\\u{9}three', 'target="a" stream="stderr"\n'],
    ]);
  });

  test('a flood of stderr is drained, and ten lines a second are logged', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    const session = await openSession(`${gate.url}/mcp`);
    const flood = { lines: 5_000, width: 1_000 };
    const started = performance.now();
    await session.request('tools/call', { name: 'stderr', arguments: flood });
    const seconds = Math.ceil((performance.now() - started) / 1000) + 1;
    const lines = gate.log.filter((line) => line.includes('stream="stderr"'));
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.length).toBeLessThanOrEqual(10 * seconds);
    // The next second begins with the number of dropped lines.
    await until(async () => {
      await session.request('tools/call', { name: 'stderr', arguments: { lines: 1 } });
      return gate.log.some((line) => /suppressed=\d{3,}/.test(line));
    });
  });
});
