import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { LIMITS, type Limits } from '../../../src/core/limits.ts';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { INITIALIZE, type Json, type McpSession, openSession, post } from '../../kit/mcp.ts';
import { until } from '../../kit/until.ts';

// The real limits are many seconds; one second, in which the other target starts, behaves the same.
const SHORT = { slowTargetStartWait: 1_000, targetResponseWait: 1_000 };
const slowGateway = (yaml: string, limits: Partial<Limits> = {}): Promise<TestGateway> =>
  gateway(yaml, { limits: { ...SHORT, ...limits } });

const { path: folder, remove } = await temporaryFolder();
afterAll(remove);
let files = 0;
const newFile = (): string => join(folder, `file-${++files}`);

const UNAVAILABLE = 'agctl/unavailableTargets';
const toolsOf = (result: Json): string[] => result.tools.map(({ name }: Json) => name);
const list = async (session: McpSession): Promise<Json> => (await session.request('tools/list')).result;

const STARTING = /^still starting, no answer for ([\d.]+) s$/;

/** How long it took, in ms. */
async function took(work: Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work;
  return performance.now() - started;
}

/** Whether a promise is still open after so many ms. */
const isOpenAfter = (work: Promise<unknown>, milliseconds: number): Promise<boolean> =>
  Promise.race([
    work.then(() => false),
    new Promise<boolean>((resolve) => setTimeout(resolve, milliseconds, true)),
  ]);

describe('a target that does not answer initialize', () => {
  test('a target that does not answer initialize does not delay the others, and lists report it as unavailable', async () => {
    await using gate = await slowGateway(mcpConfig([chaos('dumb', '--silent'), chaos('well')]));
    const session = await openSession(`${gate.url}/mcp`);
    expect(
      gate.log.some((line) => line.includes('target is slow to start') && line.includes('target="dumb"')),
    ).toBe(true);
    const { result } = await session.request('tools/list');
    expect(toolsOf(result)).toEqual(['well_echo']);
    expect(result._meta[UNAVAILABLE]).toEqual([{ name: 'dumb', error: expect.stringMatching(STARTING) }]);
    const { result: called } = await session.request('tools/call', {
      name: 'well_echo',
      arguments: { message: 'hi' },
    });
    expect(called.content[0].text).toBe('hi');
  });

  test('a target that does not answer initialize delays no list after the session has begun, also while it is retried', async () => {
    const mark = newFile();
    await using gate = await slowGateway(
      mcpConfig([chaos('dumb', '--silent', `--mark=${mark}`), chaos('well')]),
      { initializeTimeout: 1_500, retryDelayMin: 10 },
    );
    const session = await openSession(`${gate.url}/mcp`);
    const starts = (): number => readFileSync(mark, 'utf8').split('\n').length - 1;
    let longest = 0;
    await until(async () => {
      longest = Math.max(longest, await took(list(session)));
      return starts() > 1;
    });
    for (const method of ['tools/list', 'prompts/list', 'logging/setLevel'])
      longest = Math.max(longest, await took(session.request(method, { level: 'info' })));
    expect(longest).toBeLessThan(SHORT.targetResponseWait);
  });

  test('a target that does not answer initialize delays no session by more than 2 s', async () => {
    expect(LIMITS.slowTargetStartWait).toBe(2_000);
    await using gate = await gateway(mcpConfig([chaos('dumb', '--silent'), chaos('well')]));
    expect(await took(openSession(`${gate.url}/mcp`))).toBeLessThan(LIMITS.targetResponseWait / 2);
  });

  test('calls to a target that does not answer initialize fail after a timeout with the reason', async () => {
    await using gate = await slowGateway(mcpConfig([chaos('dumb', '--silent'), chaos('well')]));
    const session = await openSession(`${gate.url}/mcp`);
    const { error } = await session.request('tools/call', { name: 'dumb_echo' });
    expect(error).toEqual({
      code: -32603,
      message: 'target "dumb" is not available: no answer within 1 s',
    });
  });

  test('the log has the last stderr lines, without secrets, of a target that is slow to start, and its missing environment variables once it fails', async () => {
    const script = `
      console.error('connecting to https://me:hunter2@registry.example.com');
      setInterval(() => undefined, 1000)`;
    const dumb = { name: 'dumb', stdio: { cmd: process.execPath, args: ['-e', script] } };
    await using gate = await slowGateway(mcpConfig([dumb, chaos('well')]), {
      sessionStartTimeout: 1_500,
      initializeTimeout: 1_200,
    });
    const session = await openSession(`${gate.url}/mcp`);
    const said = 'last on stderr: connecting to https://<redacted>@registry.example.com';
    const rule = 'add more with stdio.env, or all with stdio.inheritEnv';
    const line = (text: string) =>
      gate.log.find((each) => /\twarn\t/.test(each) && each.includes(text)) ?? '';
    expect(line('target is slow to start')).toContain('no answer within 1 s');
    expect(line('target is slow to start')).toContain(
      'it is still starting and joins the session when it is ready',
    );
    expect(line('target is slow to start')).toContain('install it, or set stdio.warm');
    expect(line('target is slow to start')).not.toContain('environment');
    expect(line('target is slow to start')).toContain(said);
    await until(() => line('target is not available') !== '');
    expect(line('target is not available')).toContain('no answer to initialize within 1.2 s');
    expect(line('target is not available')).toContain(rule);
    expect(line('target is not available')).toContain(said);
    const { result } = await session.request('tools/list');
    expect(result._meta[UNAVAILABLE]).toEqual([
      { name: 'dumb', error: 'no answer to initialize within 1.2 s' },
    ]);
    expect(gate.log.join('')).not.toContain('hunter2');
  });

  test('the log does not advise stdio.warm for a slow target that has it', async () => {
    const stdio = { cmd: process.execPath, args: ['-e', 'setInterval(() => undefined, 1000)'], warm: 1 };
    await using gate = await slowGateway(mcpConfig([{ name: 'dumb', stdio }, chaos('well')]));
    await openSession(`${gate.url}/mcp`);
    const line = gate.log.find((each) => each.includes('target is slow to start')) ?? '';
    expect(line).toContain('a package that npx downloads starts slowly: install it)');
  });

  test('the last stderr lines of a single target that does not answer initialize are in the access log but not sent to the client', async () => {
    const script = `console.error('waiting for the database'); setInterval(() => undefined, 1000)`;
    const stdio = { cmd: process.execPath, args: ['-e', script], inheritEnv: true };
    await using gate = await slowGateway(mcpConfig([{ name: 'dumb', stdio }]), {
      sessionStartTimeout: 1_000,
    });
    const { text } = await post(`${gate.url}/mcp`, INITIALIZE);
    const { 'error.detail': detail } = await gate.accessLine(1);
    expect(detail).toContain('no answer within 1 s');
    expect(detail).toContain('last on stderr: waiting for the database');
    expect(detail).not.toContain('stdio.inheritEnv');
    expect(text).not.toContain('database');
  });

  test('a single target that does not answer initialize fails the session with an error to the client', async () => {
    await using gate = await slowGateway(mcpConfig([chaos('dumb', '--silent')]), {
      sessionStartTimeout: 1_500,
    });
    const { status, error } = await post(`${gate.url}/mcp`, INITIALIZE);
    expect(status).toBe(500);
    expect(error).toEqual({
      code: -32603,
      message: 'failed to create session: target "dumb": no answer within 1.5 s',
    });
  });

  test('lists wait for a slow target when all others fail, and then report the error of each', async () => {
    // A shell exits long before the wait ends, on a loaded machine too.
    const dead = { name: 'dead', stdio: { cmd: '/bin/sh', args: ['-c', 'exit 7'] } };
    await using gate = await slowGateway(mcpConfig([chaos('dumb', '--silent'), dead]), {
      sessionStartTimeout: 1_500,
    });
    const session = await openSession(`${gate.url}/mcp`);
    const { error } = await session.request('tools/list');
    expect(error.code).toBe(-32603);
    expect(error.message).toMatch(
      /target "dumb": still starting, no answer for [\d.]+ s; target "dead": .*exited with code 7/,
    );
  });

  test('with failClosed a target that does not answer initialize fails the session after a timeout', async () => {
    await using gate = await slowGateway(
      mcpConfig([chaos('dumb', '--silent'), chaos('well')], { backend: { failureMode: 'failClosed' } }),
      { sessionStartTimeout: 1_500 },
    );
    const { status, error } = await post(`${gate.url}/mcp`, INITIALIZE);
    expect(status).toBe(500);
    expect(error.message).toBe('failed to create session: target "dumb": no answer within 1.5 s');
  });
});

describe('a target that is slow to start', () => {
  test('a target that is slow to start joins the session when it is ready, and the client gets list_changed notifications', async () => {
    const start = newFile();
    await using gate = await slowGateway(
      mcpConfig([chaos('slow', `--starts-with=${start}`, '--prompts=p'), chaos('well')]),
    );
    const session = await openSession(`${gate.url}/mcp`);
    const { capabilities } = session.initialize.result;
    expect(capabilities).toMatchObject({ tools: { listChanged: true }, prompts: { listChanged: true } });
    expect((await list(session))._meta[UNAVAILABLE]).toHaveLength(1);
    const heard = changes(session);
    writeFileSync(start, '');
    expect(await heard).toEqual(['notifications/tools/list_changed', 'notifications/prompts/list_changed']);
    const { _meta, ...rest } = await list(session);
    expect(toolsOf(rest)).toEqual(['slow_echo', 'well_echo']);
    expect(_meta).toBeUndefined();
    const { result } = await session.request('tools/call', { name: 'slow_received' });
    const lines = JSON.parse(result.content[0].text).map((line: string) => JSON.parse(line).method);
    expect(lines).toEqual(['initialize', 'notifications/initialized', 'tools/list', 'tools/call']);
  });

  test('a target that is slow to start gets the log level that was set before it was ready', async () => {
    const start = newFile();
    await using gate = await slowGateway(mcpConfig([chaos('slow', `--starts-with=${start}`), chaos('well')]));
    const session = await openSession(`${gate.url}/mcp`);
    expect((await session.request('logging/setLevel', { level: 'error' })).result).toEqual({});
    const heard = changes(session, 1);
    writeFileSync(start, '');
    await heard;
    const { result } = await session.request('tools/call', { name: 'slow_received' });
    const level = JSON.parse(result.content[0].text)
      .map((line: string) => JSON.parse(line))
      .find(({ method }: Json) => method === 'logging/setLevel');
    expect(level.params).toEqual({ level: 'error' });
  });

  test('a target that is slow to start does not delay the session when no other is up; lists wait for it, and it is started once', async () => {
    const [start, mark] = [newFile(), newFile()];
    await using gate = await slowGateway(
      mcpConfig(['one', 'two'].map((name) => chaos(name, `--starts-with=${start}`, `--mark=${mark}`))),
      { slowTargetStartWait: 200 },
    );
    const session = await openSession(`${gate.url}/mcp`);
    expect(session.initialize.result.capabilities).toEqual({
      tools: { listChanged: true },
      prompts: { listChanged: true },
      resources: { listChanged: true },
    });
    const listed = list(session);
    expect(await isOpenAfter(listed, SHORT.targetResponseWait * 1.5)).toBe(true);
    writeFileSync(start, '');
    // Both targets are equally slow to start: the first to answer waits for the other.
    expect(toolsOf(await listed)).toEqual(['one_echo', 'two_echo']);
    expect(readFileSync(mark, 'utf8').split('\n')).toHaveLength(3);
  });

  test('lists do not wait for a target that is slower than the first one to be ready', async () => {
    const start = newFile();
    await using gate = await slowGateway(
      mcpConfig([chaos('one', `--starts-with=${start}`), chaos('two', '--silent')]),
      { slowTargetStartWait: 200, targetResponseWait: 200, listGracePeriod: 100 },
    );
    const session = await openSession(`${gate.url}/mcp`);
    writeFileSync(start, '');
    const began = performance.now();
    const { tools, _meta } = await list(session);
    expect(toolsOf({ tools })).toEqual(['one_echo']);
    expect(_meta[UNAVAILABLE]).toEqual([{ name: 'two', error: expect.stringMatching(STARTING) }]);
    // The session waited before the list did.
    const [, seconds] = STARTING.exec(_meta[UNAVAILABLE][0].error) ?? [];
    expect(Number(seconds) * 1_000).toBeGreaterThan(performance.now() - began);
  });
});

describe('a target that is slow to list', () => {
  test('a target that is slow to list delays one list, and its late answer is in the next list', async () => {
    const go = newFile();
    await using gate = await slowGateway(
      mcpConfig([chaos('slow', '--prompts=p', `--lists-with=${go}`), chaos('well')]),
    );
    const session = await openSession(`${gate.url}/mcp`);
    expect(await took(list(session))).toBeGreaterThan(SHORT.targetResponseWait - 100);
    const again = list(session);
    expect(await took(again)).toBeLessThan(SHORT.targetResponseWait);
    expect((await again)._meta[UNAVAILABLE]).toEqual([{ name: 'slow', error: 'no answer within 1 s' }]);
    const heard = changes(session, 1);
    writeFileSync(go, '');
    expect(await heard).toEqual(['notifications/tools/list_changed']);
    expect(toolsOf(await list(session))).toEqual(['slow_echo', 'well_echo']);
    expect(await asked(session)).toEqual(['tools/list']);
    expect(toolsOf(await list(session))).toEqual(['slow_echo', 'well_echo']);
    expect(await asked(session)).toEqual(['tools/list', 'tools/list']);
  });

  test('a target whose list is overdue is queried again without delaying the client', async () => {
    await using gate = await slowGateway(
      mcpConfig([chaos('slow', `--lists-with=${newFile()}`), chaos('well')]),
      { listPageTimeout: 1_200 },
    );
    const session = await openSession(`${gate.url}/mcp`);
    await list(session);
    let longest = 0;
    await until(async () => {
      longest = Math.max(longest, await took(list(session)));
      return (await asked(session)).length > 2;
    });
    expect(longest).toBeLessThan(SHORT.targetResponseWait);
    expect(await asked(session)).toEqual(['tools/list', 'notifications/cancelled', 'tools/list']);
  });
});

/** What the target `slow` received about lists. */
async function asked(session: McpSession): Promise<string[]> {
  const { result } = await session.request('tools/call', { name: 'slow_received' });
  const methods = JSON.parse(result.content[0].text).map((line: string) => JSON.parse(line).method);
  return methods.filter((method: string) => /list|cancelled/.test(method));
}

/** The first notifications on the session's own stream. */
async function changes({ url, id }: McpSession, count = 2): Promise<string[]> {
  const leave = new AbortController();
  const response = await fetch(url, {
    headers: { accept: 'text/event-stream', 'mcp-session-id': id },
    signal: leave.signal,
  });
  let text = '';
  // The other target may join late, too, on a busy machine.
  const methods = (): string[] => [
    ...new Set([...text.matchAll(/"method":"([^"]*)"/g)].map(([, method]) => method as string)),
  ];
  const decoder = new TextDecoder();
  for await (const chunk of response.body as ReadableStream<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    if (methods().length >= count) break;
  }
  leave.abort();
  return methods();
}
