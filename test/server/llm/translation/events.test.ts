import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ChatResponse, Part } from '../../../../src/server/llm/chat/chat.ts';
import type { ChatFormat } from '../../../../src/server/llm/chat/chat-format.ts';
import { ResponseCollector } from '../../../../src/server/llm/chat/event-response.ts';
import { serverSentEvents } from '../../../../src/server/llm/chat/server-sent-events.ts';
import { chatFormats } from '../../../../src/server/llm/formats/index.ts';
import { anyResponse, interleaved, STREAM_REQUEST, written } from '../../../kit/llm-responses.ts';

function read(format: ChatFormat, stream: string): ChatResponse {
  const reader = format.eventReader();
  const collector = new ResponseCollector();
  const splitter = serverSentEvents.splitter(1 << 20);
  const events = splitter.push(Buffer.from(stream)).flatMap(({ data, type }) => reader.read(data, type));
  // Gemini's streams have no last event.
  if (events.at(-1)?.type !== 'end') events.push(...reader.end());
  for (const event of events) collector.add(event);
  expect(events.at(-1)?.type).toBe('end');
  return collector.response();
}

/** What the formats can all express of a response: texts of a kind are joined. */
function essence({ answers, ...head }: ChatResponse): unknown {
  const joined = (parts: readonly Part[], type: 'text' | 'refusal' | 'reasoning'): string =>
    parts
      .flatMap((each) => (each.type === type ? [each.text] : []))
      .join('\n\n')
      .replaceAll(/\n{2,}/g, '\n\n');
  return {
    ...head,
    answers: answers.map(({ parts, stop }) => ({
      stop,
      text: joined(parts, 'text'),
      reasoning: joined(parts, 'reasoning'),
      calls: parts.filter(({ type }) => type === 'toolCall'),
    })),
  };
}

// Clients never get the binary streams of Amazon Bedrock.
const formats = chatFormats.filter(({ framing }) => framing === undefined);

describe.each(formats.map((format) => [format.key, format] as const))('streams of %s', (_, format) => {
  test(`a stream of ${format.key}, written from pieces and interleaved calls, contains the same as the whole response`, () => {
    fc.assert(
      fc.property(anyResponse, fc.integer({ min: 1, max: 7 }), (whole, size) => {
        const stream = read(format, written(format, interleaved(whole, size)));
        const body = format.readResponse(format.writeResponse(whole, STREAM_REQUEST));
        expect(essence(stream)).toEqual(essence(body));
      }),
      { numRuns: 300 },
    );
  });
});
