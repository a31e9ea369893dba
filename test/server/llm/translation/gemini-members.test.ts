import { describe, expect, test } from 'vitest';
import type { AnswerPart, ChatRequest } from '../../../../src/server/llm/chat/chat.ts';
import { type Json, Unfinished } from '../../../../src/server/llm/chat/chat-format.ts';
import { generateContent } from '../../../../src/server/llm/formats/generate-content/index.ts';

// Members of Gemini's answers that are null, missing or of another type than its API reference says.

const { chat: format } = generateContent;

const read = (body: Json) => format.readResponse(body);
const answer = (parts: readonly unknown[], more: Json = {}): Json => ({
  candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP' }],
  modelVersion: 'gemini-2.5-flash',
  responseId: 'r',
  ...more,
});
const partsOf = (...parts: readonly unknown[]): readonly AnswerPart[] | undefined =>
  read(answer(parts)).answers[0]?.parts;

const REQUEST: ChatRequest = {
  model: 'm',
  system: [],
  turns: [],
  tools: [],
  stream: false,
  streamUsage: false,
};
const written = (parts: readonly AnswerPart[], created?: number): Json =>
  format.writeResponse(
    {
      id: 'r',
      model: 'm',
      answers: [{ parts: [...parts], stop: 'stop' }],
      ...(created === undefined ? {} : { created }),
    },
    REQUEST,
  );
const partsWritten = (...parts: readonly AnswerPart[]): unknown =>
  (written(parts)['candidates'] as Json[]).map(({ content }) => (content as Json)['parts'])[0];

describe('an answer of Gemini', () => {
  test('is complete with nothing but a text', () => {
    expect(
      read({ candidates: [{ content: { parts: [{ text: 'yes' }] }, finishReason: 'STOP' }] }),
    ).toStrictEqual({
      id: '',
      model: '',
      answers: [{ parts: [{ type: 'text', text: 'yes' }], stop: 'stop' }],
    });
  });

  test.each([null, 5, {}, [], true])('has no id, model or time if these are %j', (value) => {
    const body = answer([{ text: 'yes' }], { responseId: value, modelVersion: value, createTime: value });
    const response = read(body);
    expect([response.id, response.model]).toEqual(['', '']);
    expect(response).not.toHaveProperty('created');
  });

  test('was created at its time, in whole seconds', () => {
    expect(read(answer([], { createTime: '2026-01-02T03:04:05.678Z' })).created).toBe(1_767_323_045);
    expect(read(answer([], { createTime: 'yesterday' }))).not.toHaveProperty('created');
  });

  test.each([null, 5, 'x', []])('reports no tokens if its usage is %j', (usageMetadata) => {
    expect(read(answer([{ text: 'yes' }], { usageMetadata }))).not.toHaveProperty('usage');
  });

  test.each([null, 5, 'x', {}, { blockReason: '' }])(
    'without candidates is refused if its feedback is %j',
    (promptFeedback) => {
      expect(() => read({ promptFeedback })).toThrow(Unfinished);
    },
  );
});

describe('a part of an answer of Gemini', () => {
  const image = { mimeType: 'image/png', data: 'AAAA' };

  test.each([null, '', [], {}, { mimeType: '', data: null }])(
    'is ignored if its data is empty: %j',
    (inlineData) => {
      expect(partsOf({ text: 'yes' }, { inlineData })).toEqual([{ type: 'text', text: 'yes' }]);
    },
  );

  test.each([
    ['of an image', image],
    ['of another type', { ...image, mimeType: 'video/mp4' }],
    ['whose type is a number', { ...image, mimeType: 7 }],
    ['without a type', { data: 'AAAA' }],
    ['whose content is a number', { ...image, data: 7 }],
    ['without content', { mimeType: 'image/png' }],
    ['that is a text', 'AAAA'],
  ])('with data %s is refused', (_, inlineData) => {
    expect(() => partsOf({ inlineData })).toThrow('candidates[].content.parts[].inlineData');
  });

  test.each([null, '', 5])('with a call whose id and signature are %j gets a generated id', (value) => {
    const [part] =
      partsOf({ functionCall: { id: value, name: 'f', args: null }, thoughtSignature: value }) ?? [];
    expect(part).toMatchObject({ type: 'toolCall', name: 'f', arguments: '{}' });
    expect(part).toHaveProperty('id', expect.stringMatching(/^call_\w+/));
  });

  test('with nothing but a signature or a mark of a thought is ignored', () => {
    expect(partsOf({ thoughtSignature: 'c2ln' }, { thought: true }, { text: '', thought: true })).toEqual([]);
  });
});

describe('an answer written for a client of Gemini', () => {
  test('has a thought with its signature, without one, or none', () => {
    const thought = { type: 'reasoning' } as const;
    expect(partsWritten({ ...thought, text: 'hm' })).toStrictEqual([{ text: 'hm', thought: true }]);
    expect(partsWritten({ ...thought, text: '' })).toStrictEqual([]);
    expect(partsWritten({ ...thought, origin: 'messages', text: '', signature: 's' })).toStrictEqual([
      { text: '', thought: true, thoughtSignature: expect.stringMatching(/^[\w+/]+=*$/) },
    ]);
    expect(partsWritten({ ...thought, origin: 'messages', text: 'hm', signature: 's' })).toStrictEqual([
      { text: 'hm', thought: true, thoughtSignature: expect.stringMatching(/^[\w+/]+=*$/) },
    ]);
  });

  test('has a time only if there is one', () => {
    expect(written([], 1_767_323_045)).toHaveProperty('createTime', '2026-01-02T03:04:05.000Z');
    for (const created of [undefined, Number.NaN, 1e300])
      expect(written([], created)).not.toHaveProperty('createTime');
  });

  test('has no usage if nobody reported one', () => {
    expect(written([])).not.toHaveProperty('usageMetadata');
  });
});
