import { expect, onTestFinished, test, vi } from 'vitest';
import { AppError } from '../../../src/core/errors.ts';
import { LIMITS } from '../../../src/core/limits.ts';
import { type Token, TokenSource } from '../../../src/server/credentials/cloud/token-source.ts';

const token = (value: string, left: number): Token => ({ value, expiresAt: Date.now() + left });
const HOUR = 3_600_000;

test('calls that wait for a token at the same time share one request for it', async () => {
  let requests = 0;
  const answer = Promise.withResolvers<Token>();
  const source = new TokenSource(() => {
    requests += 1;
    return answer.promise;
  }, 'places');
  const waiting = [source.value(), source.value(), source.value()];
  answer.resolve(token('t1', HOUR));
  expect(await Promise.all(waiting)).toEqual(['t1', 't1', 't1']);
  expect(await source.value()).toBe('t1');
  expect(requests).toBe(1);
});

test('a token that cannot be replaced is used until it expires', async () => {
  const answers = [token('t1', LIMITS.tokenRefreshBefore - 1000)];
  const source = new TokenSource(() => {
    const next = answers.shift();
    return next === undefined ? Promise.reject(new Error('down')) : Promise.resolve(next);
  }, 'places');
  expect(await source.value()).toBe('t1');
  expect(await source.value()).toBe('t1');
  answers.push(token('t2', HOUR));
  expect(await source.value()).toBe('t2');
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + HOUR });
  onTestFinished(() => void vi.useRealTimers());
  await expect(source.value()).rejects.toBeInstanceOf(AppError);
});

test('a failure names the cause and the places for the log only, without secrets, and is not remembered', async () => {
  const answers = [
    Promise.reject<Token>(new Error('invalid\nclient_secret=hunter22 given')),
    Promise.resolve(token('t1', HOUR)),
  ];
  const source = new TokenSource(() => answers.shift() as Promise<Token>, 'the file x');
  const failure: unknown = await source.value().catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(AppError);
  const { status, message, detail } = failure as AppError;
  expect(status).toBe(503);
  expect(message).toBe('upstream call failed: the gateway has no valid credentials for the provider');
  expect(detail).toBe('no credentials: invalid client_secret=<redacted> given; looked for: the file x');
  expect(await source.value()).toBe('t1');
});
