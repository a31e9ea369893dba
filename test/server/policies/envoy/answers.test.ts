import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../../src/core/limits.ts';
import { HeaderList } from '../../../../src/server/kernel/request/header-list.ts';
import { checkAnswerIn } from '../../../../src/server/policies/envoy/authorization-service.ts';
import {
  applyHeaderOptions,
  type HeaderValueOption,
  headerOf,
} from '../../../../src/server/policies/envoy/messages.ts';
import { rateLimitAnswerIn } from '../../../../src/server/policies/envoy/rate-limit-service.ts';

// How members that are missing are decoded depends on options and version of the gRPC packages: as null, an empty list or
// text, or not at all. None of the readers relies on one of them.

const SHAPES: readonly (readonly [name: string, value: unknown])[] = [
  ['undefined', undefined],
  ['null', null],
  ['a number', 7],
  ['a text', 'text'],
  ['true', true],
  ['a list', []],
  ['an object', {}],
];
const shapesBut = (...names: string[]): typeof SHAPES => SHAPES.filter(([name]) => !names.includes(name));

const EMPTY_HEADER = { key: '', value: '' };
const EMPTY_OPTION = { header: EMPTY_HEADER, appends: false, append_action: 0 };
const header = (key: string, value: string): object => ({ key, value });

describe('checkAnswerIn', () => {
  const NOTHING = { code: 0, denied: undefined, ok: undefined, metadata: {} };
  const OK = {
    headers: [],
    headersToRemove: [],
    responseHeaders: [],
    parametersToSet: [],
    parametersToRemove: [],
  };

  test.each(SHAPES)('checkAnswerIn reads %s as an answer without members', (_, value) => {
    expect(checkAnswerIn(value)).toEqual(NOTHING);
  });

  test.each(shapesBut('an object'))('checkAnswerIn ignores members that are %s', (_, value) => {
    expect(
      checkAnswerIn({ status: value, denied_response: value, ok_response: value, dynamic_metadata: value }),
    ).toEqual(NOTHING);
  });

  test.each(shapesBut('a number'))('checkAnswerIn ignores a code that is %s', (_, code) => {
    const denied = { status: undefined, headers: [], body: '' };
    expect(checkAnswerIn({ status: { code }, denied_response: { status: { code } } })).toEqual({
      ...NOTHING,
      denied,
    });
  });

  test.each(shapesBut('a text'))('checkAnswerIn ignores a body and a status that are %s', (_, value) => {
    expect(checkAnswerIn({ denied_response: { status: value, headers: value, body: value } }).denied).toEqual(
      { status: undefined, headers: [], body: '' },
    );
  });

  test.each(SHAPES)('checkAnswerIn reads changes that are %s as none', (_, value) => {
    const ok_response = {
      headers: value,
      headers_to_remove: value,
      response_headers_to_add: value,
      query_parameters_to_set: value,
      query_parameters_to_remove: value,
    };
    expect(checkAnswerIn({ ok_response }).ok).toEqual(OK);
  });

  test.each(shapesBut('a text'))(
    'checkAnswerIn reads a change that is %s as one without names',
    (_, value) => {
      const ok_response = {
        headers: [value, { header: value, append: value, append_action: 0 }],
        headers_to_remove: [value],
        response_headers_to_add: [{ header: { key: value, value, raw_value: value } }],
        query_parameters_to_set: [value, { key: value, value }],
        query_parameters_to_remove: [value],
      };
      expect(checkAnswerIn({ ok_response }).ok).toEqual({
        headers: [EMPTY_OPTION, EMPTY_OPTION],
        headersToRemove: [''],
        responseHeaders: [EMPTY_OPTION],
        parametersToSet: [EMPTY_HEADER, EMPTY_HEADER],
        parametersToRemove: [''],
      });
    },
  );

  test.each(shapesBut('a number'))('checkAnswerIn ignores an action that is %s', (_, append_action) => {
    const headers = [{ header: header('a', 'b'), append: { value: 'true' }, append_action }];
    expect(checkAnswerIn({ ok_response: { headers } }).ok?.headers).toEqual([
      { header: header('a', 'b'), appends: false, append_action: 0 },
    ]);
  });

  test('checkAnswerIn reads what a service has sent', () => {
    const options = [{ header: header('a', 'b'), append: { value: true }, append_action: 2 }];
    const answer = {
      status: { code: 7 },
      denied_response: { status: { code: 401 }, headers: options, body: 'who?' },
      ok_response: {
        headers_to_remove: ['c'],
        query_parameters_to_set: [header('d', 'e')],
        query_parameters_to_remove: ['f'],
      },
    };
    const read = [{ header: header('a', 'b'), appends: true, append_action: 2 }];
    expect(checkAnswerIn(answer)).toEqual({
      code: 7,
      denied: { status: 401, headers: read, body: 'who?' },
      ok: {
        ...OK,
        headersToRemove: ['c'],
        parametersToSet: [header('d', 'e')],
        parametersToRemove: ['f'],
      },
      metadata: {},
    });
  });

  test('checkAnswerIn accepts as many changes as a message has headers, and no more', () => {
    const removed = (count: number): unknown => ({
      ok_response: { headers_to_remove: Array(count).fill('a') },
    });
    const most = LIMITS.serviceChanges;
    expect(checkAnswerIn(removed(most)).ok?.headersToRemove).toHaveLength(most);
    expect(() => checkAnswerIn(removed(most + 1))).toThrow(`more than ${most} headers or parameters`);
  });
});

describe('headerOf', () => {
  test.each([
    ['bytes, if there are any', { key: 'a', value: 'text', raw_value: Buffer.from('bytes') }, ['a', 'bytes']],
    ['text, if the bytes are empty', { key: 'a', value: 'text', raw_value: Buffer.alloc(0) }, ['a', 'text']],
    ['text without bytes', { key: 'a', value: 'text' }, ['a', 'text']],
    ['nothing for an empty value', { key: 'a', value: '' }, undefined],
    ['nothing for a value with a newline', { key: 'a', value: 'b\nc' }, undefined],
    ['nothing for a name that is not valid', { key: 'a b', value: 'c' }, undefined],
  ])('headerOf gives %s', (_, value, expected) => {
    expect(headerOf(value)).toEqual(expected);
  });
});

describe('applyHeaderOptions', () => {
  test.each<[append_action: number, appends: boolean, known: string[], unknown: string[]]>([
    [0, false, ['new'], ['new']],
    [0, true, ['old', 'new'], ['new']],
    [1, false, ['old'], ['new']],
    [2, true, ['new'], ['new']],
    [3, false, ['new'], []],
    [99, false, ['old', 'new'], ['new']],
    [-1, false, ['old', 'new'], ['new']],
  ])('applyHeaderOptions with action %i and append=%s', (append_action, appends, known, unknown) => {
    const headers = new HeaderList(['x-known', 'old']);
    const option = (key: string, value: string): HeaderValueOption => ({
      header: { key, value },
      appends,
      append_action,
    });
    const options = [
      option('x-empty', ''),
      option('host', 'h'),
      option('x-known', 'new'),
      option('x-new', 'new'),
    ];
    applyHeaderOptions(headers, options);
    expect(headers.raw).toEqual([
      ...known.flatMap((value) => ['x-known', value]),
      ...unknown.flatMap((value) => ['x-new', value]),
    ]);
  });
});

describe('rateLimitAnswerIn', () => {
  const NOTHING = {
    isOverLimit: false,
    lowest: undefined,
    responseHeaders: [],
    requestHeaders: [],
    body: '',
  };

  test.each(SHAPES)('rateLimitAnswerIn refuses %s, and the same as a result', (_, value) => {
    expect(() => rateLimitAnswerIn(value)).toThrow('the answer has no result');
    expect(() => rateLimitAnswerIn({ overall_code: value })).toThrow('the answer has no result');
  });

  test.each(SHAPES)('rateLimitAnswerIn reads members that are %s as none', (_, value) => {
    const answer = {
      overall_code: 1,
      statuses: value,
      raw_body: value,
      response_headers_to_add: value,
      request_headers_to_add: value,
    };
    expect(rateLimitAnswerIn(answer)).toEqual(NOTHING);
  });

  test.each(SHAPES)('rateLimitAnswerIn ignores statuses and limits that are %s', (_, value) => {
    const statuses = [value, { current_limit: value, limit_remaining: 1 }];
    expect(rateLimitAnswerIn({ overall_code: 1, statuses })).toEqual(NOTHING);
  });

  test.each(shapesBut('a number'))('rateLimitAnswerIn ignores numbers that are %s', (_, value) => {
    const statuses = [
      { current_limit: { requests_per_unit: value }, limit_remaining: 1 },
      { current_limit: { requests_per_unit: 1 }, limit_remaining: value },
    ];
    expect(rateLimitAnswerIn({ overall_code: 1, statuses })).toEqual(NOTHING);
  });

  test.each(SHAPES)('rateLimitAnswerIn reads a duration that is %s as none', (_, duration_until_reset) => {
    const statuses = [{ current_limit: { requests_per_unit: 9 }, limit_remaining: 8, duration_until_reset }];
    expect(rateLimitAnswerIn({ overall_code: 2, statuses })).toEqual({
      ...NOTHING,
      isOverLimit: true,
      lowest: { limit: 9, remaining: 8, resetSeconds: 0 },
    });
  });

  test.each([
    ['a text', '12', 12],
    ['an object with a text', { toString: () => '12' }, 12],
    ['null', null, 0],
    ['no number', 'soon', 0],
    ['a negative number', -1, 0],
    ['infinite', 'Infinity', LIMITS.rateLimitReset],
  ])('rateLimitAnswerIn reads seconds that are %s', (_, seconds, resetSeconds) => {
    const status = { current_limit: { requests_per_unit: 9 }, limit_remaining: 8 };
    const statuses = [{ ...status, duration_until_reset: { seconds } }];
    expect(rateLimitAnswerIn({ overall_code: 1, statuses }).lowest?.resetSeconds).toBe(resetSeconds);
  });

  test('rateLimitAnswerIn tells the first of the limits with the fewest requests left', () => {
    const status = (limit: number, limit_remaining: number): object => ({
      current_limit: { requests_per_unit: limit },
      limit_remaining,
    });
    const statuses = [status(10, 5), status(20, 3), status(30, 3), status(40, 4)];
    expect(rateLimitAnswerIn({ overall_code: 1, statuses }).lowest).toEqual({
      limit: 20,
      remaining: 3,
      resetSeconds: 0,
    });
  });

  test('rateLimitAnswerIn reads bytes as text', () => {
    const headers = [{ key: 'a', raw_value: Buffer.from('b') }];
    const answer = {
      overall_code: 2,
      raw_body: Buffer.from('slow down'),
      response_headers_to_add: headers,
    };
    expect(rateLimitAnswerIn(answer)).toMatchObject({
      body: 'slow down',
      responseHeaders: [{ key: 'a', value: '', raw_value: Buffer.from('b') }],
    });
  });
});
