import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway } from '../../kit/gateway.ts';
import { INITIALIZE, type Json, openSession, post } from '../../kit/mcp.ts';
import { until } from '../../kit/until.ts';

const GOOD = chaos('good');
const DEAD = { name: 'dead', stdio: { cmd: 'no-such-command' } };
const REASON = 'failed to start stdio server: command not found';
const UNAVAILABLE = 'agctl/unavailableTargets';

const { path: folder, remove } = await temporaryFolder();
afterAll(remove);
let files = 0;

/** A file without which a target does not start: removing it keeps a dead one from coming back. */
function neededFile(): string {
  files += 1;
  const file = join(folder, `needed-${files}`);
  writeFileSync(file, '');
  return file;
}

describe('failOpen, the default', () => {
  test('failOpen serves the remaining targets and reports which target is unavailable and why', async () => {
    await using gate = await gateway(mcpConfig([DEAD, GOOD]));
    const session = await openSession(`${gate.url}/mcp`);
    expect(session.initialize.result.capabilities.tools).toEqual({ listChanged: true });
    const { result } = await session.request('tools/list');
    expect(result.tools.map(({ name }: Json) => name)).toEqual(['good_echo']);
    expect(result._meta).toEqual({
      [UNAVAILABLE]: [{ name: 'dead', error: expect.stringContaining(REASON) }],
    });
    expect((await session.request('tools/call', { name: 'good_echo' })).result.content[0].text).toBe('echo');
    const { error } = await session.request('tools/call', { name: 'dead_x' });
    expect(error).toEqual({
      code: -32603,
      message: expect.stringContaining(`target "dead" is not available: ${REASON}`),
    });
    expect(gate.log.filter((line) => line.includes('target is not available')).length).toBeGreaterThan(0);
  });

  test('failOpen lets a target rejoin within the session', async () => {
    const cure = join(folder, 'cure');
    await using gate = await gateway(mcpConfig([chaos('sick', `--needs=${cure}`), GOOD]));
    const session = await openSession(`${gate.url}/mcp`);
    const list = async (): Promise<Json> => (await session.request('tools/list')).result;
    expect((await list())._meta[UNAVAILABLE][0].error).toMatch(/exited with code 5/);
    writeFileSync(cure, '');
    await until(async () => (await list())._meta === undefined);
    expect((await list()).tools.map(({ name }: Json) => name)).toEqual(['sick_echo', 'good_echo']);
    expect((await session.request('tools/call', { name: 'sick_echo' })).result.content[0].text).toBe('echo');
  });

  test('failOpen keeps serving the other targets when one exits later', async () => {
    await using gate = await gateway(mcpConfig([chaos('a'), GOOD]));
    const session = await openSession(`${gate.url}/mcp`);
    const dying = session.request('tools/call', { name: 'a_die' });
    const { result } = await session.request('tools/call', { name: 'good_echo' });
    expect(result.content[0].text).toBe('echo');
    expect((await dying).error.message).toBe('target "a" exited with code 3');
  });

  test('failOpen answers with the reasons of all targets when every target fails', async () => {
    await using gate = await gateway(mcpConfig([DEAD, { ...DEAD, name: 'dead2' }]));
    const { status, error } = await post(`${gate.url}/mcp`, INITIALIZE);
    expect(status).toBe(500);
    expect(error.message).toContain(`target "dead": ${REASON}`);
    expect(error.message).toContain(`target "dead2": ${REASON}`);
  });

  test('failOpen answers a list with an error when no target is left', async () => {
    const needed = neededFile();
    await using gate = await gateway(mcpConfig(['a', 'b'].map((name) => chaos(name, `--needs=${needed}`))));
    const session = await openSession(`${gate.url}/mcp`);
    rmSync(needed);
    await Promise.all(['a_die', 'b_die'].map((name) => session.request('tools/call', { name })));
    const { error } = await session.request('tools/list');
    expect(error.code).toBe(-32603);
    expect(error.message).toMatch(/no target answered: target "a": .*; target "b": /);
  });
});

describe('failClosed', () => {
  const backend = { failureMode: 'failClosed' };

  test('failClosed begins no session unless every target is available', async () => {
    await using gate = await gateway(mcpConfig([DEAD, GOOD], { backend }));
    const { status, headers, error } = await post(`${gate.url}/mcp`, INITIALIZE);
    expect(status).toBe(500);
    expect(headers.get('mcp-session-id')).toBeNull();
    expect(error.message).toContain(REASON);
  });

  test('failClosed ends the child processes of a session that failed to begin', async () => {
    await using gate = await gateway(mcpConfig([DEAD, GOOD], { backend }));
    await post(`${gate.url}/mcp`, INITIALIZE);
    await until(() => gate.log.some((line) => line.includes('target ended\ttarget="good"')));
  });

  test('failClosed returns an error instead of a partial list', async () => {
    const needed = neededFile();
    await using gate = await gateway(mcpConfig([chaos('a', `--needs=${needed}`), GOOD], { backend }));
    const session = await openSession(`${gate.url}/mcp`);
    rmSync(needed);
    await session.request('tools/call', { name: 'a_die' });
    const { error } = await session.request('tools/list');
    expect(error.message).toMatch(/^no target answered: target "a": /);
    expect((await session.request('tools/call', { name: 'good_echo' })).result.content[0].text).toBe('echo');
  });
});
