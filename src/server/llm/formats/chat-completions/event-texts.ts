import { elementsOf } from '../../../../core/foreign.ts';
import { membersOf } from '../../json-members.ts';
import { type TextPath, textPart } from '../../texts.ts';
import { ALL, type EventTexts, indexIn, type PlacedText } from '../event-texts.ts';

/**
 * Chat and text completions: each event has parts of choices. Clients assemble every text of a choice separately, so
 * they need not stay in order; otherwise a long tool call after a short content would be held completely.
 */
export const chatEvents: EventTexts = {
  repeatsTexts: false,
  placeOf: (event, path) => placeOf(elementsOf(event['choices']), path),
  orderOf(event, texts) {
    const choices = elementsOf(event['choices']);
    const lanes = new Set<string>([ALL]);
    const follows = new Set<string>();
    for (const { channel } of texts) {
      if (channel === undefined) continue;
      lanes.add(channel);
      follows.add(channel);
    }
    for (const [position, choice] of choices.entries()) {
      const lane = laneOf(choices, position);
      lanes.add(lane);
      if ((membersOf(choice)?.['finish_reason'] ?? null) !== null) follows.add(lane);
    }
    // The usage report, and whatever else has no choices, such as an error.
    if (choices.length === 0) follows.add(ALL);
    return { lanes: [...lanes], follows: [...follows] };
  },
};

const laneOf = (choices: readonly unknown[], position: number): string =>
  `choice ${indexOf(choices[position], position)}`;

/** What a text of a choice continues. Other texts of an event, such as citations beside the choices, are whole. */
function placeOf(choices: readonly unknown[], [field, position, ...path]: TextPath): PlacedText | undefined {
  if (field !== 'choices' || typeof position !== 'number') return undefined;
  const choice = choices[position];
  const lane = laneOf(choices, position);
  const part = textPart(path);
  if (path.includes('annotations')) return { part };
  const hasLogprobs = (membersOf(choice)?.['logprobs'] ?? null) !== null;
  const derived = hasLogprobs ? [{ path: ['choices', position, 'logprobs'], json: 'null' }] : [];
  const channel = `${lane} ${JSON.stringify(channelPath(choice, path))}`;
  return { channel, part, derived, ...runOf(lane, path) };
}

/** Parts of a content and of reasoning follow each other, whatever their positions. */
function runOf(lane: string, path: TextPath): Pick<PlacedText, 'run'> {
  if (path.includes('tool_calls') || !path.some((step) => typeof step === 'number')) return {};
  return { run: `${lane} ${JSON.stringify(path.filter((step) => typeof step === 'string'))}` };
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
