import { textIn } from '../../../../core/foreign.ts';
import { type Members, membersOf } from '../../json-members.ts';
import { type TextPart, type TextPath, textPart } from '../../texts.ts';
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
 * `/v1/responses`: events named `….delta` continue a text of an output item; `….done`, `response.output_item.done` and
 * the last event repeat it (OpenAI's API reference, "Streaming events"). Events are numbered, so all stay in order.
 */
export const responsesEvents: EventTexts = {
  repeatsTexts: true,
  response: 'response',
  isRecording: (event, path) => path[0] === 'delta' && textIn(event['type']).endsWith('.audio.delta'),
  placeOf: (event, path) => placeOf(event, textIn(event['type']), path),
  orderOf(event, texts) {
    const type = textIn(event['type']);
    // Some providers send Anthropic's keep-alive event.
    if ((type === 'ping' || type === 'keepalive') && texts.length === 0) return IGNORED;
    return { ...IN_ORDER, ...endOf(event, type) };
  },
  renumbered({ sequence_number: number }, removed) {
    if (typeof number !== 'number') return undefined;
    return { path: ['sequence_number'], json: String(number - removed) };
  },
};

/** The channel of an event: kind of text, item, and part of the item. */
function channelOf(event: Members, type: string): string {
  const kind = type.replace(/\.(?:delta|done|annotation\.added)$/, '');
  const item = indexIn(event['output_index']) ?? textIn(event['item_id']);
  return `${kind} ${item} ${indexIn(event['content_index'] ?? event['summary_index']) ?? '-'}`;
}

function placeOf(event: Members, type: string, path: TextPath): PlacedText | undefined {
  const [first, member] = path;
  if (first === 'delta') {
    const channel = channelOf(event, type);
    if (path.length === 1)
      return { ...continued(channel), part: partOf(type), derived: derivedFrom(event, []) };
    // The output of a shell: a delta with `stdout` and `stderr`.
    return { channel: `${channel} ${JSON.stringify(path)}`, part: partOf(type) };
  }
  // Of several deltas as of one, as the text that they repeat.
  if (first === 'logprobs' && path.length === 1) return { channel: `${channelOf(event, type)} logprobs` };
  if (type.endsWith('.delta')) return undefined;
  if (first === 'response' && member !== 'output' && member !== 'output_text') return undefined;
  if (type === 'error') return undefined;
  const found = wholeText(event, path);
  if (!type.endsWith('.added') || type.endsWith('.annotation.added')) return found;
  const kind = continuedKind(path, membersOf(event[String(first)])?.['type']);
  return kind === undefined ? found : { ...found, ...continued(channelOf(event, kind)) };
}

/** Texts and reasoning go on in the next part of the same kind, and in that of the next item. */
function continued(channel: string): PlacedText {
  const run = RUNS.find((kind) => channel.startsWith(`${kind} `));
  return { channel, ...(run !== undefined && { run }) };
}

const ANSWERS = ['response.output_text', 'response.refusal'];
const THOUGHTS = ['response.reasoning_text', 'response.reasoning_summary_text'];
const RUNS = [...ANSWERS, ...THOUGHTS];

/** Runs that end when an item of this type begins. */
const endedBy = (type: unknown): string[] => {
  if (type === 'message') return THOUGHTS;
  return type === 'reasoning' ? ANSWERS : RUNS;
};

/** Members beside a text that repeat it (token probabilities) or point into it (citations). */
function derivedFrom(owner: unknown, at: TextPath): NonNullable<PlacedText['derived']> {
  return ['logprobs', 'annotations']
    .filter((key) => Array.isArray(membersOf(owner)?.[key]))
    .map((key) => ({ path: [...at, key], json: '[]' }));
}

function endOf(event: Members, type: string): Pick<EventOrder, 'ends' | 'describes'> {
  if (LAST.has(type)) return { ends: [ALL] };
  if (type.endsWith('.annotation.added')) return { describes: channelOf(event, type) };
  if (type === 'response.output_item.added') return { ends: endedBy(membersOf(event['item'])?.['type']) };
  return type.endsWith('.done') ? { ends: [channelOf(event, type)] } : {};
}

const LAST = new Set(['response.completed', 'response.incomplete', 'response.failed']);

/** The kind of the deltas that continue a text at the start of an item or part. These texts are empty at OpenAI. */
function continuedKind(path: TextPath, type: unknown): string | undefined {
  if (path.length !== 2) return undefined;
  const [owner, member] = path;
  if (owner === 'part') return PARTS.get(`${textIn(type)} ${member}`);
  return owner === 'item' ? ITEMS.get(`${textIn(type)} ${member}`) : undefined;
}

const PARTS = new Map([
  ['output_text text', 'response.output_text'],
  ['refusal refusal', 'response.refusal'],
  ['reasoning_text text', 'response.reasoning_text'],
  ['summary_text text', 'response.reasoning_summary_text'],
]);

const ITEMS = new Map([
  ['function_call arguments', 'response.function_call_arguments'],
  ['mcp_call arguments', 'response.mcp_call_arguments'],
  ['custom_tool_call input', 'response.custom_tool_call_input'],
  ['code_interpreter_call code', 'response.code_interpreter_call_code'],
]);

/** A text of an event that is not a delta. Its owner and the items that it is in say what it is. */
function wholeText(event: Members, path: TextPath): PlacedText {
  const types = path[0] === 'response' ? [] : [textIn(event['type'])];
  let owner: unknown = event;
  for (const step of path.slice(0, -1)) {
    owner = membersOf(owner)?.[step];
    types.push(String(membersOf(owner)?.['type'] ?? ''));
  }
  const isCall = types.some((type) => CALL.test(type));
  return {
    part: isCall ? 'toolCalls' : textPart(path),
    ...(path.length > 0 && { derived: derivedFrom(owner, path.slice(0, -1)) }),
  };
}

const CALL = /call|tool/;

/** The part of a text that deltas of this type continue. */
function partOf(type: string): TextPart {
  if (CALL.test(type)) return 'toolCalls';
  if (type.includes('reasoning')) return 'reasoning';
  return /output_text|refusal/.test(type) ? 'content' : 'other';
}
