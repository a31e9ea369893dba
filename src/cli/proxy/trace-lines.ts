import { createParser } from 'eventsource-parser';
import { CommandError } from '../../core/exit-codes.ts';
import { LIMITS } from '../../core/limits.ts';

/** An item of a trace stream: the text of an event, or a comment. */
export type TraceItem = { readonly json: string } | { readonly sign: string };

/**
 * Splits a trace into items: server-sent events, one JSON object per line, or both, with any line ending. Comments are
 * keepalives; `event:`, `id:` and unknown fields are ignored, as upstream's command does. The last event
 * need not end with an empty line.
 *
 * @throws CommandError with exit name `unreachable` for an event longer than `LIMITS.traceEventLength`
 */
export async function* traceItems(source: AsyncIterable<Uint8Array>): AsyncGenerator<TraceItem> {
  const found: TraceItem[] = [];
  const parser = createParser({
    maxBufferSize: LIMITS.traceEventLength,
    onEvent: ({ data }) => {
      if (data !== '') found.push({ json: data });
    },
    onComment: (text) => void found.push({ sign: text.trim() }),
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded') throw oversized();
    },
  });
  for await (const line of linesOf(source)) {
    // The parser would pass it over, and need not tell when it came in pieces.
    if (line.trimStart().startsWith('{')) found.push({ json: line });
    else parser.feed(`${line}\n`);
    yield* found.splice(0);
  }
  parser.feed('\n');
  yield* found;
}

const oversized = (): CommandError =>
  new CommandError(
    'unreachable',
    `the trace has an event of more than ${LIMITS.traceEventLength / 1024 / 1024} MiB`,
  );

async function* linesOf(source: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let pending: string[] = [];
  let length = 0;
  const push = (text: string): void => {
    length += text.length;
    if (length > LIMITS.traceEventLength) throw oversized();
    pending.push(text);
  };
  for await (const bytes of source) {
    const lines = decoder.decode(bytes, { stream: true }).split('\n');
    for (const text of lines.slice(0, -1)) {
      push(text);
      yield pending.join('').replace(/\r$/, '');
      pending = [];
      length = 0;
    }
    push(lines.at(-1) ?? '');
  }
  const rest = pending.join('') + decoder.decode();
  if (rest !== '') yield rest.replace(/\r$/, '');
}
