import { membersOf } from '../../json-members.ts';
import { type TextPath, textPart } from '../../texts.ts';
import {
  ALL,
  type EventContent,
  type EventText,
  indexIn,
  type StreamFormat,
  visitOutput,
} from './stream-format.ts';

/**
 * Chat and text completions: each event has parts of choices. Clients assemble every text of a choice separately, so
 * they need not stay in order; otherwise a long tool call after a short content would be held completely.
 */
export const chatEvents: StreamFormat = {
  repeatsTexts: false,
  read({ choices }) {
    const texts: EventText[] = [];
    const lanes = new Set<string>([ALL]);
    const follows = new Set<string>();
    const found = Array.isArray(choices) ? (choices as unknown[]) : [];
    for (const [position, choice] of found.entries()) {
      const lane = `choice ${indexOf(choice, position)}`;
      lanes.add(lane);
      for (const text of textsOf(choice, position, lane)) {
        texts.push(text);
        const { channel = lane } = text;
        lanes.add(channel);
        follows.add(channel);
      }
      const reason = membersOf(choice)?.['finish_reason'] ?? null;
      if (reason !== null) follows.add(lane);
    }
    // The usage report, and whatever else has no choices, such as an error.
    if (found.length === 0) follows.add(ALL);
    return { texts, lanes: [...lanes], follows: [...follows] } satisfies EventContent;
  },
};

function textsOf(choice: unknown, position: number, lane: string): EventText[] {
  const texts: EventText[] = [];
  const at: TextPath = ['choices', position];
  const hasLogprobs = (membersOf(choice)?.['logprobs'] ?? null) !== null;
  const derived = hasLogprobs ? [{ path: [...at, 'logprobs'], json: 'null' }] : [];
  visitOutput(choice, (text, path) => {
    const channel = `${lane} ${JSON.stringify(channelPath(choice, path))}`;
    texts.push({ channel, part: textPart(path), path: [...at, ...path], text, derived });
  });
  return texts;
}

/** The path of a text with the indexes of tool calls in place of their positions: an event has parts of the list. */
function channelPath(choice: unknown, path: TextPath): TextPath {
  let value: unknown = choice;
  return path.map((step) => {
    value = membersOf(value)?.[step];
    return typeof step === 'number' ? indexOf(value, step) : step;
  });
}

/** The position of a choice or tool call in its list. */
function indexOf(item: unknown, position: number): number {
  return indexIn(membersOf(item)?.['index']) ?? position;
}
