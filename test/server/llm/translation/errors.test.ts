import { expect } from 'vitest';
import { type Case, runCases } from './cases.ts';
import { wire } from './wire.ts';

const call = wire();

interface ErrorCase extends Case {
  readonly status: number;
}

const REQUEST = { model: 'some-model', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] };

runCases<ErrorCase>('errors', async ({ input, status }, from, to) => {
  const request = to === 'responses' ? { model: 'some-model', input: 'Hi' } : REQUEST;
  const answer = { status, body: input ?? '<html></html>' };
  const reply = await call(to, from, request, answer);
  expect(reply.status).toBe(status);
  return reply.body;
});
