import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../../../kit/config.ts';
import { temporaryFolder } from '../../../../kit/folder.ts';
import { gateway } from '../../../../kit/gateway.ts';
import { isAlive, pidsIn } from '../../../../kit/is-alive.ts';
import { INITIALIZE, type Json, type McpSession, openSession, post } from '../../../../kit/mcp.ts';
import { until } from '../../../../kit/until.ts';

const { path: folder, remove } = await temporaryFolder();
afterAll(remove);
let files = 0;
const newFile = (): string => join(folder, `file-${++files}`);

const warm = (count: number, name: string, ...flags: string[]) => {
  const { stdio } = chaos(name, ...flags);
  return { name, stdio: { ...stdio, warm: count } };
};

/** Process ids that children wrote to the file, in the order of their starts. */
const started = (mark: string): number[] => pidsIn(mark);
const living = (mark: string): number[] => started(mark).filter(isAlive);

const textOf = async (session: McpSession, name: string): Promise<string> =>
  (await session.request('tools/call', { name })).result.content[0].text;
const pidOf = async (session: McpSession): Promise<number> => Number(await textOf(session, 'pid'));

describe('processes of a stdio target that are started in advance', () => {
  test('a process that was started in advance is given to one session with the parameters of its client, and is replaced', async () => {
    const mark = newFile();
    await using gate = await gateway(mcpConfig([warm(2, 'a', `--mark=${mark}`)]));
    await until(() => living(mark).length === 2);
    const inAdvance = started(mark);
    const one = await openSession(`${gate.url}/mcp`);
    const first = await pidOf(one);
    expect(inAdvance).toContain(first);
    await until(() => living(mark).length === 3);
    const two = await openSession(`${gate.url}/mcp`);
    const second = await pidOf(two);
    expect(started(mark)).toContain(second);
    expect(second).not.toBe(first);
    const received: Json[] = JSON.parse(await textOf(two, 'received')).map((line: string) =>
      JSON.parse(line),
    );
    expect(received[0]).toMatchObject({ method: 'initialize', params: INITIALIZE.params });
    await until(() => living(mark).length === 4);
    await one.end();
    await until(() => !isAlive(first));
    expect(isAlive(second)).toBe(true);
    await gate.close();
    expect(living(mark)).toEqual([]);
  });

  test('processes that were started in advance count towards maxChildren and are stopped before a session is evicted', async () => {
    const [marked, other] = [newFile(), newFile()];
    const targets = (path: string, target: object) => ({
      matches: [{ path: { exact: path } }],
      backends: [{ mcp: { targets: [target] } }],
    });
    const config = { adminAddr: 'off', mcp: { maxChildren: 3 } };
    const routes = [
      targets('/warm', warm(5, 'a', `--mark=${marked}`)),
      targets('/cold', chaos('b', `--mark=${other}`)),
    ];
    await using gate = await gateway(JSON.stringify({ config, gateways: { default: { port: 0, routes } } }));
    await until(() => living(marked).length === 3);
    const cold = [];
    for (let count = 1; count <= 3; count += 1) {
      cold.push(await openSession(`${gate.url}/cold`));
      await until(() => living(marked).length === 3 - count);
      expect(living(other)).toHaveLength(count);
    }
    for (const session of cold) expect((await session.request('ping')).status).toBe(200);
    expect(gate.log.join('')).not.toContain('idle session was evicted');
  });

  test('missing processes are started again when other sessions of the target end', async () => {
    const mark = newFile();
    await using gate = await gateway(
      mcpConfig([warm(1, 'a', `--mark=${mark}`)], { config: { mcp: { maxChildren: 2 } } }),
    );
    await until(() => living(mark).length === 1);
    const one = await openSession(`${gate.url}/mcp`);
    await until(() => living(mark).length === 2);
    const two = await openSession(`${gate.url}/mcp`);
    expect([await pidOf(one), await pidOf(two)].toSorted()).toEqual(living(mark).toSorted());
    await one.end();
    await until(() => living(mark).length === 2);
    expect(living(mark)).toContain(await pidOf(two));
  });

  test('a process that was started in advance and ends is replaced after a back-off', async () => {
    const [mark, needed] = [newFile(), newFile()];
    writeFileSync(needed, '');
    const target = warm(1, 'a', `--mark=${mark}`, `--needs=${needed}`);
    await using gate = await gateway(mcpConfig([target]), { limits: { retryDelayMin: 20 } });
    await until(() => living(mark).length === 1);
    rmSync(needed);
    process.kill(started(mark)[0] as number, 'SIGKILL');
    await until(() => started(mark).length >= 4);
    expect(
      gate.log.filter((line) =>
        /\twarn\t.*a process that was started in advance has ended\ttarget="a"/.test(line),
      ).length,
    ).toBeGreaterThanOrEqual(3);
    const waits = gate.log.flatMap((line) => /started in advance.*retry\.ms=(\d+)/.exec(line)?.[1] ?? []);
    expect(waits.slice(0, 3)).toEqual(['20', '40', '80']);
    writeFileSync(needed, '');
    // A session may still get a process that was started before the file was there.
    await until(async () => (await post(`${gate.url}/mcp`, INITIALIZE)).status === 200);
  });

  test('a command that is not found is reported to the client as without processes in advance', async () => {
    await using gate = await gateway(mcpConfig([{ name: 'a', stdio: { cmd: 'no-such-command', warm: 2 } }]));
    const { error } = await post(`${gate.url}/mcp`, INITIALIZE);
    expect(error.message).toContain('failed to start stdio server: command not found');
  });

  test('a reload that removes a target stops the processes that were started for it in advance', async () => {
    const [before, after] = [newFile(), newFile()];
    await using gate = await gateway(mcpConfig([warm(2, 'a', `--mark=${before}`)]), {
      live: 'asked',
      folder,
    });
    await until(() => living(before).length === 2);
    const session = await openSession(`${gate.url}/mcp`);
    const own = await pidOf(session);
    writeFileSync(join(folder, 'test.yaml'), mcpConfig([warm(1, 'b', `--mark=${after}`)]));
    await gate.live.reload();
    await until(() => living(after).length === 1);
    // The session continues with its own process, and needs no others.
    await until(() => living(before).length === 1);
    expect(await pidOf(session)).toBe(own);
  });
});

test('a configuration with processes in advance and one shared process is rejected', async () => {
  const target = warm(1, 'a');
  await expect(gateway(mcpConfig([{ ...target, stdio: { ...target.stdio, shared: true } }]))).rejects.toThrow(
    'targets.0.stdio.warm: `warm` cannot be used with a process that all sessions share',
  );
});
