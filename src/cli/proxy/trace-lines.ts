import { CommandError } from '../../core/exit-codes.ts';
import { LIMITS } from '../../core/limits.ts';

/** What a trace stream holds: the text of an event, or a sign of life. */
export type TraceItem = { readonly json: string } | { readonly sign: string };

/**
 * Takes a trace apart: server-sent events, or one JSON object a line, or both, with any line ending. Comments are
 * signs of life; `event:`, `id:` and what else there may be is passed over, as upstream's command does.
 *
 * @throws CommandError (unreachable) for an event longer than `LIMITS.traceEventLength`
 */
export async function* traceItems(source: AsyncIterable<Uint8Array>): AsyncGenerator<TraceItem> {
  let data: string[] = [];
  const items = (line: string): TraceItem[] => {
    if (line === '') {
      const json = data.join('\n');
      data = [];
      return json === '' ? [] : [{ json }];
    }
    if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5));
    else if (line.startsWith(':')) return [{ sign: line.slice(1).trim() }];
    else if (line.trimStart().startsWith('{')) return [{ json: line }];
    return [];
  };
  for await (const line of linesOf(source)) yield* items(line);
  yield* items('');
}

async function* linesOf(source: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let pending: string[] = [];
  let length = 0;
  const push = (text: string): void => {
    length += text.length;
    if (length > LIMITS.traceEventLength)
      throw new CommandError(
        'unreachable',
        `the trace has an event of more than ${LIMITS.traceEventLength / 1024 / 1024} MiB`,
      );
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
