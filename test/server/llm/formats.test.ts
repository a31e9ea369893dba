import { describe, expect, test } from 'vitest';
import { StreamedCompletion } from '../../../src/server/llm/chat/conversation.ts';
import { type FormatKey, formats } from '../../../src/server/llm/formats/index.ts';
import { completionOf, streamedOutputOf } from '../../../src/server/llm/formats/output.ts';
import { outputFields, promptFields } from '../../../src/server/llm/formats/text-fields.ts';
import { EVENTS } from '../../kit/llm-member-events.ts';
import { RESPONSES } from '../../kit/llm-member-responses.ts';

describe.each([
  ['requests', promptFields, formats.map((format) => format.promptFields ?? [])],
  ['responses', outputFields, formats.map((format) => format.outputFields ?? [])],
])('the members with texts of %s', (_, all, ofFormats) => {
  const names = all.map(({ name }) => name);

  test('are read once each, although several formats have them', () => {
    expect(names).toEqual([...new Set(ofFormats.flat().map(({ name }) => name))]);
  });

  test('are in the order of each format', () => {
    for (const fields of ofFormats) {
      const own = fields.map(({ name }) => name);
      expect(names.filter((name) => own.includes(name))).toEqual(own);
    }
  });
});

describe.each(Object.keys(EVENTS) as FormatKey[])('for expressions, output of %s', (key) => {
  test('in a response is the same if the format of the call is unknown', () => {
    const known = completionOf(RESPONSES[key], key);
    expect([...known.texts, ...known.toolCalls]).not.toEqual([]);
    expect(completionOf(RESPONSES[key], undefined)).toEqual(known);
  });

  test('in a stream is the same if the format of the call is unknown', () => {
    const known = streamed(key, key);
    expect([...known.texts, ...known.toolCalls]).not.toEqual([]);
    expect(streamed(key, undefined)).toEqual(known);
  });
});

function streamed(key: FormatKey, as: FormatKey | undefined): StreamedCompletion['completion'] {
  const output = new StreamedCompletion((event) => streamedOutputOf(event, as));
  for (const event of EVENTS[key] ?? []) output.add(JSON.stringify(event));
  return output.completion;
}
