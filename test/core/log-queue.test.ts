import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { LIMITS } from '../../src/core/limits.ts';
import { fileSink } from '../../src/core/log.ts';

test('a log says how much waits to be written, and nothing waits once it has left', async () => {
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
