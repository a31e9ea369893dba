import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../../kit/folder.ts';
import { repeats } from '../../../kit/thorough.ts';

const CHILD = join(import.meta.dirname, 'embedding-child.ts');
const KILLS = repeats(4, 100);
/** Lines after which a child is killed, so that kills hit different states of the queue. */
const LINES = 12;

interface Line {
  readonly stored?: number;
  readonly documents?: number;
  readonly [field: string]: unknown;
}

function victim(args: readonly string[], wrap: readonly string[] = []): ChildProcess {
  const [command = '', ...rest] = [
    ...wrap,
    process.execPath,
    '--disable-warning=ExperimentalWarning',
    CHILD,
    ...args,
  ];
  return spawn(command, rest, { stdio: ['ignore', 'pipe', 'inherit'] });
}

test(`killing the process ${KILLS} times while it embeds and re-embeds loses no text and leaves none without vector`, {
  timeout: 300_000,
  retry: 0,
}, async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'memory.db');
  let stored = 0;
  let leftOver = 0;
  for (let kill = 0; kill < KILLS; kill += 1) {
    // Another model each second time, which embeds everything again.
    const child = victim([path, `model ${kill >> 1}/128`, `${stored}`]);
    let heard = 0;
    for await (const text of createInterface({ input: child.stdout as Readable })) {
      const line = JSON.parse(text) as Line;
      if (line.stored !== undefined) stored = line.stored + 1;
      else leftOver += Number(line['pending']);
      heard += 1;
      if (heard === 2 + ((kill * 5) % LINES)) child.kill('SIGKILL');
    }
    if (child.signalCode === null && child.exitCode === null) await once(child, 'exit');
    expect(child.signalCode).toBe('SIGKILL');
  }
  expect(leftOver).toBeGreaterThan(0);
  const last = victim([path, 'last model/128']);
  const lines: Line[] = [];
  for await (const text of createInterface({ input: last.stdout as Readable }))
    lines.push(JSON.parse(text) as Line);
  const found = lines.at(-1) as Record<string, number>;
  expect(found['documents']).toBeGreaterThanOrEqual(stored);
  expect(found).toMatchObject({
    chunks: found['words'],
    words: found['words'],
    vectors: found['words'],
    pending: 0,
    old: 0,
  });
});

const strace = spawnSync('strace', ['-V']).status === 0;

test.skipIf(!strace)(
  'a full disk while texts are queued and embedded is reported, and every stored text gets its vector afterwards',
  async () => {
    await using folder = await temporaryFolder();
    const fault = ['strace', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=pwrite64'];
    const child = victim(
      [join(folder.path, 'memory.db'), 'model/128', '0', '30'],
      [...fault, '-e', 'inject=pwrite64:error=ENOSPC:when=250..256'],
    );
    const lines: Line[] = [];
    for await (const text of createInterface({ input: child.stdout as Readable }))
      lines.push(JSON.parse(text) as Line);
    const failed = lines.flatMap((line) => line['failed'] ?? []);
    expect(new Set(failed)).toEqual(new Set(['memory_full']));
    const stored = lines.filter((line) => line.stored !== undefined).length;
    const found = lines.at(-1) as Record<string, number>;
    expect(stored).toBe(30 - failed.length);
    expect(found).toMatchObject({ documents: stored, vectors: found['words'], pending: 0 });
  },
  120_000,
);
