import { bounded, type Completion, type StreamedOutput } from '../chat/conversation.ts';
import { type Members, membersOf } from '../json-members.ts';
import { clientFormatOf, type FormatKey, formats } from './index.ts';

// A call of unknown format may have the output of any.
const COMPLETIONS = new Set(formats.flatMap(({ completion }) => completion ?? []));
const STREAMED = [...new Set(formats.flatMap(({ streamedOutput }) => streamedOutput ?? []))];

const NOTHING: Completion = { texts: [], toolCalls: [] };

/** The output of a whole response for expressions. */
export function completionOf(answer: unknown, key: FormatKey | undefined): Completion {
  const value = membersOf(answer) ?? {};
  const format = clientFormatOf(key);
  if (format !== undefined) return bounded(format.completion?.(value) ?? NOTHING);
  for (const read of COMPLETIONS) {
    const found = read(value);
    if (found !== undefined) return bounded(found);
  }
  return NOTHING;
}

/** What an event of a stream adds to the output for expressions. */
export function streamedOutputOf(event: Members, key: FormatKey | undefined): StreamedOutput {
  const format = clientFormatOf(key);
  if (format !== undefined) return format.streamedOutput?.(event) ?? [];
  return STREAMED.flatMap((read) => read(event));
}
