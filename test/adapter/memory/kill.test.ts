import { expect, test } from 'vitest';
import { temporaryFolder } from '../../kit/folder.ts';
import { killLoop } from './kill-harness.ts';

/** About 90 ms of a processor each; `npm run bench memory-kill -- 500` for more. */
const CRASHES = 48;

test(`${CRASHES} times kill -9: nothing acknowledged is lost, nothing is there in part`, async () => {
  await using folder = await temporaryFolder();
  const report = await killLoop(folder.path, CRASHES);
  expect(report.problems).toEqual([]);
  expect(report.crashes).toBeGreaterThanOrEqual(CRASHES);
  expect(report.acknowledged).toBeGreaterThan(CRASHES);
}, 600_000);
