// npm run bench memory-kill [-- kills]
// Kills processes that write to a memory store, 10,000 times by default: turns, documents, imports and deletions; queued
// texts and their vectors.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { killLoop } from '../test/adapter/memory/kill-harness.ts';

const kills = Number(process.argv[2] ?? 10_000);
const folder = mkdtempSync(join(tmpdir(), 'agctl-kill-'));
const started = performance.now();
const line = (report) =>
  `${report.kills} kills, ${report.acknowledged} acknowledged writes, ` +
  `${report.unacknowledged} found that were not acknowledged yet, ${report.problems.length} problems, ` +
  `${((performance.now() - started) / 1000).toFixed(0)} s`;
try {
  const report = await killLoop(folder, kills, (so) => process.stderr.write(`\r${line(so)}`));
  process.stdout.write(`\n${line(report)}\n`);
  for (const problem of report.problems) process.stdout.write(`${problem}\n`);
  process.exitCode = report.problems.length === 0 ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
