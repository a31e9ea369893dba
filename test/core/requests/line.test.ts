import { describe, expect, test } from 'vitest';
import { compactCount, moneyText, rateText, tookText } from '../../../src/core/render/figures.ts';
import { cutSpans, spansText } from '../../../src/core/render/span.ts';
import { type RequestFields, readFinished, subjectOf } from '../../../src/core/requests/finished.ts';
import { requestLineSpans } from '../../../src/core/requests/line.ts';

const AT = new Date(2026, 10, 22, 15, 4, 38).getTime();

const line = (fields: RequestFields, columns?: number): string =>
  spansText(
    requestLineSpans({ 'http.status': 200, duration: '12ms', ...fields }, { at: AT, columns }),
    false,
  );

describe('the line of a finished request for people', () => {
  test.each<[string, RequestFields, string]>([
    [
      'a tool call',
      {
        'mcp.method.name': 'tools/call',
        'gen_ai.tool.name': 'echo',
        'mcp.target': 'files',
        'jwt.sub': 'ann',
        route: 'default/tools',
      },
      '15:04:38 ✓ 200   12ms  tools/call echo on files · ann · default/tools',
    ],
    [
      'an LLM call',
      {
        'gen_ai.operation.name': 'chat',
        'gen_ai.request.model': 'fast',
        'gen_ai.response.model': 'gpt-5-mini',
        'gen_ai.usage.input_tokens': 1203,
        'gen_ai.usage.output_tokens': 311,
        'gw.ai.usage.cost.total': '0.0041',
        duration: '1234ms',
      },
      '15:04:38 ✓ 200   1.2s  chat fast → gpt-5-mini · 1.2k → 311 tokens · $0.0041',
    ],
    [
      'a refusal',
      {
        'http.method': 'POST',
        'http.path': '/mcp',
        'http.status': 403,
        error: 'authorization failed',
        'error.detail': 'rules[0] is false',
      },
      '15:04:38 ! 403   12ms  POST /mcp · authorization failed: rules[0] is false',
    ],
    [
      'a tool that failed with status 200',
      { 'mcp.method.name': 'tools/call', 'gen_ai.tool.name': 'fail', 'error.type': 'tool_error' },
      '15:04:38 ✗ 200   12ms  tools/call fail · the tool reported an error (isError)',
    ],
    [
      'a request without status and duration, which the configuration removes',
      { 'http.method': 'GET', 'http.path': '/', 'http.status': undefined, duration: undefined },
      '15:04:38               GET /',
    ],
    [
      'text that would drive the terminal',
      { 'http.method': 'GET', 'http.path': '/\u001b[2J\u202e' },
      '15:04:38 ✓ 200   12ms  GET /\\u{1b}[2J\\u{202e}',
    ],
  ])('the line of %s', (_, fields, expected) => expect(line(fields)).toBe(expected));

  test('the line is truncated to the width of the terminal', () => {
    const fields = { 'http.method': 'GET', 'http.path': `/${'寿'.repeat(50)}` };
    expect(line(fields, 40)).toBe(`15:04:38 ✓ 200   12ms  GET /${'寿'.repeat(5)}…`);
    expect(cutSpans([{ text: 'abc' }, { text: 'def' }], 3)).toEqual([{ text: 'abc' }]);
  });

  test('the line of another day has the date', () => {
    const spans = requestLineSpans({}, { at: AT, now: AT + 24 * 3_600_000 });
    expect(spans[0]?.text).toBe('11-22 15:04:38 ');
  });

  test('the subject of an A2A call is its method', () => {
    expect(subjectOf({ 'a2a.method': 'message/send', 'http.method': 'POST' })).toBe('a2a message/send');
  });
});

test.each([
  undefined,
  null,
  7,
  {},
  { id: 1, time: 'x', fields: {} },
  { id: 1, time: '2026-01-01T00:00:00Z' },
])('a request is not read from %j', (json) => expect(readFinished(json)).toBeUndefined());

describe('figures', () => {
  test.each([
    [0, '0'],
    [999, '999'],
    [1_000, '1.0k'],
    [12_345, '12.3k'],
    [123_456, '123k'],
    [999_600, '1.0M'],
    [2_500_000_000, '2.5G'],
  ])('the count %i is shown as %s', (value, text) => expect(compactCount(value)).toBe(text));

  test.each([
    [0, '<1ms'],
    [999.4, '999ms'],
    [999.9, '1.0s'],
    [59_949, '59.9s'],
    [59_999, '1m00s'],
    [3_599_999, '1h00m'],
    [11_100_000, '3h05m'],
    [200_000_000, '2d07h'],
  ])('the duration of %f ms is shown as %s', (ms, text) => expect(tookText(ms)).toBe(text));

  test.each([
    [0, '$0'],
    [12.345, '$12.35'],
    [0.999, '$1.00'],
    [0.0041, '$0.0041'],
    [0.5, '$0.50'],
    [0.00000123, '$0.0000012'],
  ])('the amount %f is shown as %s', (dollars, text) => expect(moneyText(dollars)).toBe(text));

  test.each([
    [0, '0'],
    [0.01, '<0.1'],
    [0.34, '0.3'],
    [9.96, '10'],
    [12_300, '12.3k'],
  ])('the rate %f is shown as %s', (rate, text) => expect(rateText(rate)).toBe(text));
});
