import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { hasShape, otherShape, wrongAnswer } from '../../../src/server/llm/call/answer-shape.ts';
import type { LlmCall } from '../../../src/server/llm/llm-call.ts';

const CHAT = 'the provider answered in the format of the Chat Completions API, not of ';
const APIS = { messages: 'the Messages API', responses: 'the Responses API' };
const call = (format: LlmCall['format'], streaming = false): LlmCall => ({
  limits: LIMITS,
  format,
  operation: 'chat',
  provider: 'openai',
  requestModel: 'm',
  configuredModel: 'm',
  streaming,
  hasNoText: false,
  isFree: false,
  isUnmetered: false,
  request: {},
});

describe.each(['messages', 'responses'] as const)('for a client of %s', (format) => {
  test.each([
    [{ choices: [] }, 'completions'],
    [{ choices: [], object: 7 }, 'completions'],
    [{ choices: null, object: 'chat.completion' }, 'completions'],
    [{ object: 'chat.completion.chunk' }, 'completions'],
    [{ candidates: [] }, 'generateContent'],
    [{ candidates: [{}], object: null }, 'generateContent'],
    [{ object: 'response' }, 'responses'],
    [{ type: 'response.created' }, 'responses'],
    [{ type: 'response.output_text.delta', object: 7 }, 'responses'],
    [{ type: 'message' }, 'messages'],
    [{ type: 'message_start' }, 'messages'],
    [{ type: 'content_block_delta' }, 'messages'],
  ])('%j has the shape of %s', (value, shape) => {
    const names = { ...APIS, completions: 'the Chat Completions API', generateContent: 'the Gemini API' };
    const problem =
      shape === undefined || shape === format
        ? undefined
        : `the provider answered in the format of ${names[shape as keyof typeof names]}, not of ${APIS[format]}`;
    expect(otherShape(format, value)).toBe(problem);
    expect(wrongAnswer(call(format), value)).toBe(problem);
  });

  test.each([
    [{ choices: {} }],
    [{ choices: 'a', candidates: { 0: 1 } }],
    [{ object: ['chat.completion'], type: ['message'] }],
    [{ object: { startsWith: 7 }, type: { startsWith: 7 } }],
    [{ type: 'ping' }],
    [{ type: null, object: null }],
    [{ detail: 'queued' }],
    [{}],
  ])('%j may be an event, but is no answer', (value) => {
    expect(otherShape(format, value)).toBeUndefined();
    expect(wrongAnswer(call(format), value)).toBe(
      `the provider answered with something else than a response of ${APIS[format]}`,
    );
  });

  test.each([[null], [7], ['text'], [[{ type: 'message' }]], [true], [undefined]])(
    '%j is no answer',
    (value) => {
      expect(wrongAnswer(call(format), value)).toBe(
        'the provider answered with something else than a JSON object',
      );
    },
  );

  test.each([[{ error: { message: 'm' } }], [{ error: 'm', choices: [] }], [{ error: 7, candidates: [] }]])(
    '%j is an error, which every format has',
    (value) => {
      expect(wrongAnswer(call(format), value)).toBeUndefined();
      expect(wrongAnswer(call(format, true), value)).toBeUndefined();
    },
  );

  test.each([[{ error: null, choices: [] }], [{ error: {}, choices: [] }], [{ error: '', choices: [] }]])(
    '%j has an error that says nothing',
    (value) => {
      expect(wrongAnswer(call(format), value)).toBe(CHAT + APIS[format]);
    },
  );

  test('a whole answer is no stream, whatever its format', () => {
    for (const value of [{ type: 'message' }, { object: 'response' }, {}])
      expect(wrongAnswer(call(format, true), value)).toBe(
        'the provider answered a request for a stream with a whole response',
      );
  });
});

test.each(['speech', undefined] as const)('answers for %s may have any shape', (format) => {
  expect(hasShape(format)).toBe(false);
  expect(wrongAnswer(call(format), null)).toBeUndefined();
});
