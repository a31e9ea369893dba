import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fileSink } from '../../src/core/file-sink.ts';
import { LIMITS } from '../../src/core/limits.ts';

test('fileSink reports queued bytes, and none after flush', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'agctl-log-'));
  const file = join(folder, 'log');
  const sink = fileSink(openSync(file, 'w'));
  const line = `${'x'.repeat(99)}\n`;
  sink.write(line);
  sink.write(line);
  expect(sink.queued).toBe(200);
  await sink.flush();
  expect([sink.queued, sink.dropped, readFileSync(file, 'utf8')]).toEqual([0, 0, line + line]);
  expect(LIMITS.logBatchBytes).toBeGreaterThan(200);
  rmSync(folder, { recursive: true });
});

test('fileSink writes its last lines when the process exits immediately', () => {
  const module = new URL('../../src/core/file-sink.ts', import.meta.url).href;
  const script = `import { fileSink } from '${module}'; fileSink(1).write('the last line\\n'); process.exit(3);`;
  const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script]);
  expect([status, String(stdout)]).toEqual([3, 'the last line\n']);
});

test.skipIf(!existsSync('/dev/full'))(
  'fileSink gives up its last lines at the exit if its file takes none',
  () => {
    const module = new URL('../../src/core/file-sink.ts', import.meta.url).href;
    const script = `import { fileSink } from '${module}'; fileSink(1).write('the last line\\n'); process.exit(3);`;
    const { status, signal } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', openSync('/dev/full', 'w'), 'inherit'],
      timeout: 20_000,
    });
    expect([status, signal]).toEqual([3, null]);
  },
);

test.skipIf(!existsSync('/dev/full'))(
  'fileSink drops lines over its bound while its file takes none, and its flush ends',
  async () => {
    const sink = fileSink(openSync('/dev/full', 'w'));
    const line = `${'x'.repeat(1023)}\n`;
    for (let count = 0; count < 1500; count += 1) sink.write(line);
    await sink.flush();
    expect([sink.queued, sink.dropped, sink.isBlocked]).toEqual([LIMITS.logQueueBytes, 1500 - 1024, false]);
    expect(sink.failure?.problem).toContain('ENOSPC');
    sink.discard?.();
  },
);

test('fileSink counts the lines that it cannot write because its reader has left, and says so', () => {
  const module = new URL('../../src/core/file-sink.ts', import.meta.url).href;
  const script = `import { fileSink } from '${module}';
    const sink = fileSink(1);
    const timer = setInterval(() => {
      sink.write('line\\n');
      void sink.flush();
      if (sink.dropped < 3) return;
      clearInterval(timer);
      console.error(sink.failure.isEnded, sink.failure.problem);
    }, 1);`;
  const command = '"$0" --input-type=module -e "$1" | true';
  const { stderr } = spawnSync('sh', ['-c', command, process.execPath, script], { timeout: 20_000 });
  expect(String(stderr)).toBe('true its reader has left\n');
});
