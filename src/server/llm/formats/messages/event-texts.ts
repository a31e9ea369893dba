import { textIn } from '../../../../core/foreign.ts';
import { type Members, membersOf } from '../../json-members.ts';
import { type TextPath, textPart } from '../../texts.ts';
import {
  ALL,
  type EventOrder,
  type EventTexts,
  IGNORED,
  IN_ORDER,
  indexIn,
  type PlacedText,
} from '../event-texts.ts';

/**
 * `/v1/messages`: one content block after another, each started, continued and stopped by events (Anthropic's API
 * reference, "Streaming messages"). All events stay in order.
 */
export const messagesEvents: EventTexts = {
  repeatsTexts: false,
  placeOf: (event, path) => placeOf(event, textIn(event['type']), path),
  orderOf(event, texts) {
    const type = textIn(event['type']);
    return type === 'ping' && texts.length === 0 ? IGNORED : { ...IN_ORDER, ...endOf(event, type) };
  },
};

/** Texts of a block that events continue. Deltas name the input of a tool otherwise. */
type Part = 'text' | 'thinking' | 'input';

/** What a delta adds to: its type, the member with its text, and the part of the block. */
const DELTAS: ReadonlyMap<unknown, readonly [member: string, part: Part]> = new Map([
  ['text_delta', ['text', 'text']],
  ['thinking_delta', ['thinking', 'thinking']],
  ['input_json_delta', ['partial_json', 'input']],
]);

const TEXT_PARTS = { text: 'content', thinking: 'reasoning', input: 'toolCalls' } as const;

/** What the names of all channels of a block begin with. */
const blockOf = ({ index }: Members): string => `block ${indexIn(index) ?? '-'}`;

const channelOf = (event: Members, part: Part): string => `${blockOf(event)} ${part}`;

/** Texts and thoughts go on in the next block of the same type: a model that cites has one block per citation. */
const RUNS: readonly string[] = ['text', 'thinking'];

function placeOf(event: Members, type: string, path: TextPath): PlacedText | undefined {
  const [owner, member] = path;
  if (type === 'content_block_start') {
    if (owner !== 'content_block') return undefined;
    // Text and thinking of the start of a block continue in its deltas; other texts are complete.
    const isContinued = path.length === 2 && (member === 'text' || member === 'thinking');
    return isContinued ? continued(event, member) : { part: textPart(path) };
  }
  if (type !== 'content_block_delta') return type === 'error' ? undefined : { part: textPart(path) };
  if (owner !== 'delta') return undefined;
  const delta = textIn(membersOf(event['delta'])?.['type']);
  const [text, part] = DELTAS.get(delta) ?? [];
  if (part !== undefined && path.length === 2 && member === text) return continued(event, part);
  // Each citation is complete, but texts of a compaction, and of types that the API may add, continue each other.
  if (delta === 'citations_delta') return { part: textPart(path) };
  const channel = `${blockOf(event)} ${JSON.stringify([delta, ...path])}`;
  return { part: textPart(path), channel };
}

const continued = (event: Members, part: Part): PlacedText => ({
  channel: channelOf(event, part),
  part: TEXT_PARTS[part],
  ...(part !== 'input' && { run: part }),
});

function endOf(event: Members, type: string): Pick<EventOrder, 'ends' | 'describes'> {
  switch (type) {
    case 'content_block_start': {
      const started = textIn(membersOf(event['content_block'])?.['type']);
      return { ends: RUNS.filter((run) => run !== started) };
    }
    case 'content_block_delta': {
      const delta = membersOf(event['delta'])?.['type'];
      return delta === 'signature_delta' ? { describes: channelOf(event, 'thinking') } : {};
    }
    case 'content_block_stop':
      return { ends: [blockOf(event)] };
    case 'message_delta':
    case 'message_stop':
      return { ends: [ALL] };
    default:
      return {};
  }
}
