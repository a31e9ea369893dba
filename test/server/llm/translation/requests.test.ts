import { expect } from 'vitest';
import { type Outcome, runCases } from './cases.ts';
import { wire } from './wire.ts';

const call = wire();

/** The error with which a client's request is refused. */
const REFUSED = /`(?<refused>.+)` cannot be translated from \w+ to \w+(?:: (?<why>.+))?$/;

runCases('requests', async ({ input }, from, to) => {
  // The provider's error is of no interest: what it got is.
  const { status, body, received } = await call(from, to, input, { status: 418, body: 'no' });
  if (received !== undefined) return received;
  expect(status).toBe(400);
  const { message } = body['error'] as { message: string };
  const { refused = message, why } = REFUSED.exec(message)?.groups ?? {};
  return (why === undefined ? { refused } : { refused, why }) satisfies Outcome;
});
