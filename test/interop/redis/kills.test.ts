import { expect, test } from 'vitest';
import { killReplicas } from '../../kit/replicas.ts';

const KILLS = Number(process.env['AGCTL_KILLS'] ?? 500);

test(`after ${KILLS} kills of a replica under load, every token that was taken stands for a request`, async () => {
  const outcome = await killReplicas(KILLS);
  process.stderr.write(`${JSON.stringify({ kills: KILLS, ...outcome })}\n`);
  // Those of the replica that stays, and some of the others.
  expect(outcome.answered).toBeGreaterThan(outcome.sent / 2);
  expect(outcome.received).toBeGreaterThanOrEqual(outcome.answered);
  expect(outcome.taken).toBeGreaterThanOrEqual(outcome.received);
  expect(outcome.taken - outcome.answered).toBeLessThanOrEqual(outcome.inFlight);
  expect(outcome.taken).toBeLessThanOrEqual(outcome.sent);
}, 3_600_000);
