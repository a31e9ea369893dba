import { describe, expect, test } from 'vitest';
import { readEventError, readProviderError } from '../../../../src/server/llm/chat/provider-error.ts';

// Every shape check of the reader of errors, which answers of all formats would take minutes to reach.

const NAMELESS = 'The provider answered with status 418.';

describe('the error of a response', () => {
  test.each<[body: unknown, message: string, more?: object]>([
    [{ error: { message: 'm', type: 't', code: 'c', param: 'p' } }, 'm', { code: 'c', param: 'p' }],
    [{ error: { message: 'm', type: 't', code: 1, param: ['p'] } }, 'm', { code: 't' }],
    [{ error: { message: 'm', type: '', status: 's' } }, 'm', { code: 's' }],
    [[{ error: { message: 'm' } }, { error: { message: 'other' } }], 'm'],
    [{ error: 'm', message: 'other' }, 'm'],
    [{ error: '', message: 'm' }, 'm'],
    ['x', 'x'],
    [{ detail: [{ loc: ['body', 'n'], msg: 'a' }, 'b', 0] }, 'body.n: a; b'],
    [{ errors: [{ message: 'm', code: 7003 }] }, 'm'],
    [{ error: null, message: 'm', code: 'c' }, 'm', { code: 'c' }],
    [{ message: 'm', detail: 'd' }, 'm'],
    [{ detail: 'd', msg: 'm' }, 'd'],
    [{ msg: 'm' }, 'm'],
    [{ error: ['x'] }, NAMELESS],
    [{ error: [{ message: 'm' }] }, NAMELESS],
    [{ error: { message: ['m'], detail: { a: 1 }, msg: 0 } }, NAMELESS],
    [{ 0: { message: 'm' } }, NAMELESS],
    [{ error: 1 }, NAMELESS],
    [{ error: { message: 'prompt is too long' } }, 'prompt is too long', { code: 'context_length_exceeded' }],
    [
      { error: { message: 'Prompt is too long: 9', type: 'invalid_request_error' } },
      'Prompt is too long: 9',
      { code: 'context_length_exceeded' },
    ],
    [{ error: { message: 'prompt is too long', code: 'c' } }, 'prompt is too long', { code: 'c' }],
    [{ error: { message: 'no', type: 'invalid_request_error' } }, 'no', { code: 'invalid_request_error' }],
    ...[undefined, null, '', 1, [], [null], [[{ message: 'm' }]], {}].map((body): [unknown, string] => [
      body,
      NAMELESS,
    ]),
  ])('%j is read as %j', (body, message, more = {}) => {
    expect(readProviderError(body, 418)).toEqual({ message, status: 418, ...more });
  });
});

describe('the status of an error in a stream', () => {
  test.each<[error: object, status: number]>([
    [{ code: 400 }, 400],
    [{ code: 599 }, 599],
    [{ code: 399 }, 500],
    [{ code: 600 }, 500],
    [{ code: '429' }, 429],
    [{ code: [429] }, 500],
    [{ code: 'rate_limit_exceeded', type: 'overloaded_error' }, 429],
    [{ code: null, type: 'overloaded_error' }, 529],
    [{ code: 1, type: 'x' }, 500],
    [{}, 500],
  ])('of %j is %i', (error, status) => {
    expect(readEventError({ error }).status).toBe(status);
    expect(readEventError(error).status).toBe(status);
  });

  test('is 500 for anything else', () => {
    for (const body of [undefined, null, 'x', 1, [{ code: 400 }], { error: 'x' }, { error: [] }])
      expect(readEventError(body).status).toBe(500);
    expect(readEventError({ error: { message: 'm' } })).toEqual({ message: 'm', status: 500 });
  });
});
