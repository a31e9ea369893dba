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
  test('lets the other targets serve, and says who is missing and why', async () => {
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

  test('lets a target come back within the session', async () => {
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

  test('lets the others serve when one dies later', async () => {
    await using gate = await gateway(mcpConfig([chaos('a'), GOOD]));
    const session = await openSession(`${gate.url}/mcp`);
    const dying = session.request('tools/call', { name: 'a_die' });
    const { result } = await session.request('tools/call', { name: 'good_echo' });
    expect(result.content[0].text).toBe('echo');
    expect((await dying).error.message).toBe('target "a" exited with code 3');
  });

  test('cannot help when every target fails: the reasons of all are the answer', async () => {
    await using gate = await gateway(mcpConfig([DEAD, { ...DEAD, name: 'dead2' }]));
    const { status, error } = await post(`${gate.url}/mcp`, INITIALIZE);
    expect(status).toBe(500);
    expect(error.message).toContain(`target "dead": ${REASON}`);
    expect(error.message).toContain(`target "dead2": ${REASON}`);
  });

  test('answers a list with an error when nobody is left', async () => {
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

  test('begins no session without every target', async () => {
    await using gate = await gateway(mcpConfig([DEAD, GOOD], { backend }));
    const { status, headers, error } = await post(`${gate.url}/mcp`, INITIALIZE);
    expect(status).toBe(500);
    expect(headers.get('mcp-session-id')).toBeNull();
    expect(error.message).toContain(REASON);
  });

  test('ends the children of a session that did not begin', async () => {
    await using gate = await gateway(mcpConfig([DEAD, GOOD], { backend }));
    await post(`${gate.url}/mcp`, INITIALIZE);
    await until(() => gate.log.some((line) => line.includes('target ended\ttarget="good"')));
  });

  test('lists nothing rather than a part', async () => {
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
