import { type Members, membersOf } from '../../json-members.ts';
import { forEachNumber, type TextPath, textPart } from '../../texts.ts';
import {
  ALL,
  type EventContent,
  type EventText,
  IGNORED,
  IN_ORDER,
  indexIn,
  type StreamFormat,
  visitOutput,
} from './stream-format.ts';

/**
 * `/v1/messages`: one content block after another, each started, continued and stopped by events (Anthropic's API
 * reference, "Streaming messages"). All events stay in order.
 */
export const messagesEvents: StreamFormat = {
  repeatsTexts: false,
  read(event) {
    switch (event['type']) {
      case 'ping':
        return IGNORED;
      case 'content_block_start':
        return { ...IN_ORDER, texts: startTexts(event) };
      case 'content_block_delta':
        return { ...IN_ORDER, ...deltaContent(event) };
      case 'content_block_stop':
        return { ...IN_ORDER, texts: [], ends: [blockOf(event)] };
      case 'message_start':
        return {
          ...IN_ORDER,
          texts: wholeTexts(membersOf(event['message'])?.['content'], ['message', 'content']),
        };
      case 'message_stop':
        return { ...IN_ORDER, texts: [], ends: [ALL] };
      case 'message_delta':
      case 'error':
        return { ...IN_ORDER, texts: [] };
      default:
        return { ...IN_ORDER, texts: wholeTexts(event, []) };
    }
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

function deltaContent(event: Members): Pick<EventContent, 'texts' | 'describes'> {
  const delta = membersOf(event['delta']);
  if (delta?.['type'] === 'signature_delta') return { texts: [], describes: channelOf(event, 'thinking') };
  const [member, part] = DELTAS.get(delta?.['type']) ?? [];
  const text = member === undefined ? undefined : delta?.[member];
  if (member === undefined || part === undefined || typeof text !== 'string')
    return { texts: otherTexts(event, delta) };
  if (text === '') return { texts: [] };
  return {
    texts: [{ channel: channelOf(event, part), part: TEXT_PARTS[part], path: ['delta', member], text }],
  };
}

/**
 * Texts of other deltas: each citation is complete, but those of a compaction, and of types that the API may add, continue
 * each other.
 */
function otherTexts(event: Members, delta: Members | undefined): EventText[] {
  const texts = wholeTexts(delta, ['delta']);
  if (delta?.['type'] === 'citations_delta') return texts;
  return texts.map((text) => ({
    ...text,
    channel: `${blockOf(event)} ${JSON.stringify([delta?.['type'], ...text.path])}`,
  }));
}

/** Text and thinking of the start of a block continue in its deltas; other texts are complete. */
function startTexts(event: Members): EventText[] {
  const input: EventText[] = [];
  const path = ['content_block', 'input'];
  forEachNumber(
    membersOf(event['content_block'])?.['input'],
    (text, at) => input.push({ part: 'toolCalls', path: at, text }),
    path,
  );
  const texts = wholeTexts(event['content_block'], ['content_block']).map((text) => {
    const [, member, ...rest] = text.path;
    const isContinued = rest.length === 0 && (member === 'text' || member === 'thinking');
    return isContinued ? { ...text, channel: channelOf(event, member) } : text;
  });
  return [...texts, ...input];
}

function wholeTexts(value: unknown, at: TextPath): EventText[] {
  const texts: EventText[] = [];
  visitOutput(value, (text, path) => {
    texts.push({ part: textPart([...at, ...path]), path: [...at, ...path], text });
  });
  return texts;
}
