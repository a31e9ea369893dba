import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';
import { openSqliteStore } from '../../../../src/adapter/memory/sqlite/open.ts';
import { temporaryFolder } from '../../../kit/folder.ts';
import { repeats } from '../../../kit/thorough.ts';
import { recordingLog } from '../recording-log.ts';

const CHILD = join(import.meta.dirname, '../erasing-child.ts');

/** Runs the child until it ends or has said so many lines; returns its lines. */
async function run(args: readonly string[], lines: number, wrap: readonly string[] = []): Promise<string[]> {
  const [command = '', ...rest] = [
    ...wrap,
    process.execPath,
    '--disable-warning=ExperimentalWarning',
    CHILD,
    ...args,
  ];
  const child = spawn(command, rest, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  const said: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    said.push(line);
    if (said.length === lines) child.kill('SIGKILL');
  }
  await ended;
  return said;
}

/** Every acknowledged import is there and complete, and nothing of what was acknowledged as deleted is in any file. */
async function check(folder: string, said: readonly string[]): Promise<void> {
  const numbers = (kind: string): Set<string> =>
    new Set(said.filter((line) => line.startsWith(`${kind} `)).map((line) => line.split(' ')[1] as string));
  const deleted = numbers('deleted');
  const bytes = readdirSync(folder).map((name) => readFileSync(join(folder, name)));
  for (const n of deleted) expect(bytes.some((file) => file.includes(`marker${n}x`))).toBe(false);
  const store = await openSqliteStore({ path: join(folder, 'memory.db'), log: recordingLog() });
  const started = new Set([...numbers('stored'), ...numbers('failed')]);
  for (const n of numbers('stored')) {
    const turns = (await store.turns(`batch ${n}`, { after: 0, limit: 9 }))?.turns.length ?? 0;
    const { entities } = await store.agentGraph({ names: [`Entity ${n}`] });
    // Its only observation mentioned the marker.
    if (deleted.has(n)) expect([turns, entities[0]?.observations]).toEqual([0, []]);
    // Its deletion may have been committed, but not acknowledged.
    else if (Number(n) % 2 === 1) expect([0, 5]).toContain(turns);
    else expect([n, turns, entities.length]).toEqual([n, 5, 1]);
  }
  const { sessions } = await store.sessions({ limit: 5000 });
  // An unacknowledged batch is there completely or not at all.
  for (const { turns } of sessions) expect(turns).toBe(5);
  expect(started.size).toBeGreaterThan(0);
  await store.close();
}

test('killing imports and deletions with SIGKILL loses no acknowledged batch and leaves no deleted byte', async () => {
  await using folder = await temporaryFolder();
  const said: string[] = [];
  for (let round = 0; round < repeats(2, 40); round++) {
    const lines = 5 + ((round * 7) % 20);
    said.push(...(await run([join(folder.path, 'memory.db'), `${round * 1_000}`], lines)));
    await check(folder.path, said);
  }
}, 300_000);

const strace = spawnSync('strace', ['-V']).status === 0;

test.skipIf(!strace)(
  'a full disk during imports and deletions is not acknowledged',
  async () => {
    await using folder = await temporaryFolder();
    const fault = ['strace', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=pwrite64'];
    const said = await run([join(folder.path, 'memory.db'), '0', '60'], Number.POSITIVE_INFINITY, [
      ...fault,
      '-e',
      'inject=pwrite64:error=ENOSPC:when=300..310',
    ]);
    expect(said.some((line) => line.startsWith('failed '))).toBe(true);
    expect(said.at(-1)).toMatch(/^(?:stored|deleted) 59$/);
    await check(folder.path, said);
  },
  120_000,
);
