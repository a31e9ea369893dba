import { env } from 'node:process';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../kit/folder.ts';
import { killLoop } from './kill-harness.ts';

/** Some 150 ms of a processor each. `npm run bench memory-kill` for 10,000. */
const KILLS = env['CI'] === undefined || env['CI'] === 'npm test' ? 60 : 500;

// What is lost once in 500 is lost: no second try.
test(`${KILLS} times kill -9: nothing acknowledged is lost, nothing is there in part`, {
  retry: 0,
  timeout: 600_000,
}, async () => {
  await using folder = await temporaryFolder();
  const report = await killLoop(folder.path, KILLS);
  expect(report.problems).toEqual([]);
  expect(report.kills).toBe(KILLS);
  expect(report.acknowledged).toBeGreaterThan(KILLS / 2);
});
