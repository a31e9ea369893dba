import { elementsOf } from '../../../../core/foreign.ts';
import { type Completion, functionCallsIn, type StreamedOutput, textOf } from '../../chat/conversation.ts';
import { type Members, membersOf } from '../../json-members.ts';

/** The output of `generateContent` for expressions, without thoughts. */
export function completion({ candidates }: Members): Completion | undefined {
  if (!Array.isArray(candidates)) return undefined;
  const parts = candidates.map(partsOf);
  return { texts: parts.map(answerIn), toolCalls: functionCallsIn(parts.flat()) };
}

/** Calls are not split over events. */
export function streamedOutput({ candidates }: Members): StreamedOutput {
  if (!Array.isArray(candidates)) return [];
  return candidates.map((candidate: unknown, at) => {
    const index = membersOf(candidate)?.['index'];
    const parts = partsOf(candidate);
    return {
      index: typeof index === 'number' ? index : at,
      text: answerIn(parts),
      calls: functionCallsIn(parts).map(({ id, name, arguments: value }) => ({
        id,
        name,
        written: JSON.stringify(value),
      })),
    };
  });
}

function partsOf(candidate: unknown): Members[] {
  const list = membersOf(membersOf(candidate)?.['content'])?.['parts'];
  return elementsOf(list).map((part) => membersOf(part) ?? {});
}

const answerIn = (parts: readonly Members[]): string =>
  textOf(parts.filter(({ thought }) => thought !== true));
