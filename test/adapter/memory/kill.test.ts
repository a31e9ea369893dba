import { expect, test } from 'vitest';
import { temporaryFolder } from '../../kit/folder.ts';
import { killLoop } from './kill-harness.ts';

/** KILL_CRASHES=500 for a longer run; `npm run bench memory-kill` does 10,000. */
const CRASHES = Number(process.env['KILL_CRASHES'] ?? 48);

test(`${CRASHES} times kill -9: nothing acknowledged is lost, nothing is there in part`, async () => {
  await using folder = await temporaryFolder();
  const report = await killLoop(folder.path, CRASHES);
  expect(report.problems).toEqual([]);
  expect(report.crashes).toBeGreaterThanOrEqual(CRASHES);
  expect(report.acknowledged).toBeGreaterThan(CRASHES);
}, 600_000);
