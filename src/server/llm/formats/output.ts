import { bounded, type Completion, type StreamedOutput } from '../chat/conversation.ts';
import { type Members, membersOf } from '../json-members.ts';
import { clientFormatOf, type FormatKey, formats } from './index.ts';

const NOTHING: Completion = { texts: [], toolCalls: [] };

/** The output of a whole response for expressions. A call of unknown format may have that of any. */
export function completionOf(answer: unknown, key: FormatKey | undefined): Completion {
  const value = membersOf(answer) ?? {};
  const format = clientFormatOf(key);
  for (const each of format === undefined ? formats : [format]) {
    const found = each.completion?.(value);
    if (found !== undefined) return bounded(found);
  }
  return NOTHING;
}

/** What an event of a stream adds to the output for expressions. */
export function streamedOutputOf(event: Members, key: FormatKey | undefined): StreamedOutput {
  const format = clientFormatOf(key);
  if (format !== undefined) return format.streamedOutput?.(event) ?? [];
  return formats.flatMap((each) => each.streamedOutput?.(event) ?? []);
}
