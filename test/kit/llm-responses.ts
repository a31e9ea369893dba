import fc from 'fast-check';
import type {
  Answer,
  AnswerPart,
  ChatEvent,
  ChatRequest,
  ChatResponse,
} from '../../src/server/llm/chat/chat.ts';
import type { ChatFormat } from '../../src/server/llm/chat/chat-format.ts';
import { eventsOf } from '../../src/server/llm/chat/event-response.ts';

// Any answers of models, in the types that translations use.

/** The request of a client that asked for a stream. */
export const STREAM_REQUEST: ChatRequest = {
  model: 'm',
  system: [],
  turns: [],
  tools: [],
  stream: true,
  streamUsage: true,
};

const text = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 40 })
  .filter((value) => value.trim() !== '');
const id = fc.stringMatching(/^[a-z0-9]{6}$/);
const args = fc
  .dictionary(fc.stringMatching(/^[a-z]{1,5}$/), text, { maxKeys: 3 })
  .map((value) => JSON.stringify(value));

const part: fc.Arbitrary<AnswerPart> = fc.oneof(
  text.map((value) => ({ type: 'text' as const, text: value })),
  fc.record({
    type: fc.constant('reasoning' as const),
    text,
    origin: fc.constantFrom('messages' as const, 'completions' as const),
  }),
  fc.record({
    type: fc.constant('toolCall' as const),
    id: id.map((value) => `call_${value}`),
    name: id,
    arguments: args,
  }),
);

const answer: fc.Arbitrary<Answer> = fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => ({
  parts,
  stop: parts.some(({ type }) => type === 'toolCall') ? 'toolCalls' : 'stop',
}));

const count = fc.nat(10_000);
/** Any response with one answer: texts, reasoning and tool calls. */
export const anyResponse: fc.Arbitrary<ChatResponse> = fc.record({
  id: id.map((value) => `x-${value}`),
  model: fc.constant('m-1'),
  created: fc.constant(1_760_000_000),
  answers: fc.tuple(answer),
  usage: fc
    .record({ uncached: count, cachedInput: count, cacheWrite: count, output: count, reasoning: count })
    .map(({ uncached, output, reasoning, ...cache }) => ({
      input: uncached + cache.cachedInput + cache.cacheWrite,
      output: output + reasoning,
      reasoning,
      ...cache,
    })),
});

/** Events as a provider may send them: deltas in pieces, and tool calls that follow each other interleaved. */
export function interleaved(whole: ChatResponse, size: number): ChatEvent[] {
  const events = [...eventsOf(whole)].flatMap((event): ChatEvent[] => {
    if (event.type !== 'delta') return [event];
    const letters = [...event.text];
    const pieces: ChatEvent[] = [];
    for (let at = 0; at < letters.length; at += size)
      pieces.push({ ...event, text: letters.slice(at, at + size).join('') });
    return pieces;
  });
  const calls = new Set(
    events.flatMap((event) =>
      event.type === 'partStart' && event.content.type === 'toolCall' ? [event.part] : [],
    ),
  );
  // Runs of events of calls are dealt out in turns.
  const result: ChatEvent[] = [];
  let run: ChatEvent[] = [];
  const flush = (): void => {
    const byPart = Map.groupBy(run, (event) => (event as { part: number }).part);
    const lists = [...byPart.values()];
    for (let turn = 0; lists.some((list) => turn < list.length); turn += 1)
      for (const list of lists) if (turn < list.length) result.push(list[turn] as ChatEvent);
    run = [];
  };
  for (const event of events) {
    if ('part' in event && calls.has(event.part)) run.push(event);
    else {
      flush();
      result.push(event);
    }
  }
  flush();
  return result;
}

/** A stream of a format. */
export function written(format: ChatFormat, events: readonly ChatEvent[]): string {
  const writer = format.eventWriter(STREAM_REQUEST);
  return events.map((event) => writer.write(event)).join('');
}
