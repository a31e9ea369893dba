import { textIn } from '../../../../core/foreign.ts';
import { type Members, membersOf } from '../../json-members.ts';
import { type TextPath, textPart } from '../../texts.ts';
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
 * `/v1/responses`: events named `….delta` continue a text of an output item; `….done`, `response.output_item.done` and
 * the last event repeat it (OpenAI's API reference, "Streaming events"). Events are numbered, so all stay in order.
 */
export const responsesEvents: StreamFormat = {
  repeatsTexts: true,
  read(event) {
    const type = typeof event['type'] === 'string' ? event['type'] : '';
    // Some providers send Anthropic's keep-alive event.
    if (type === 'ping' || type === 'keepalive') return IGNORED;
    if (BYTES.test(type) || type === 'error') return { ...IN_ORDER, texts: [] };
    const { delta } = event;
    if (typeof delta === 'string')
      return { ...IN_ORDER, texts: delta === '' ? [] : [deltaText(event, type, delta)] };
    // The output of a shell: a delta with `stdout` and `stderr`.
    if (membersOf(delta) !== undefined) return { ...IN_ORDER, texts: deltaTexts(event, type, delta) };
    return { ...IN_ORDER, texts: wholeTexts(event, type), ...endOf(event, type) };
  },
  renumbered({ sequence_number: number }, removed) {
    if (typeof number !== 'number') return undefined;
    return { path: ['sequence_number'], json: String(number - removed) };
  },
};

/** Images and recordings. */
const BYTES = /\.audio\.delta$|\.partial_image$/;

/** The channel of an event: kind of text, item, and part of the item. */
function channelOf(event: Members, type: string): string {
  const kind = type.replace(/\.(?:delta|done|annotation\.added)$/, '');
  const item = indexIn(event['output_index']) ?? textIn(event['item_id']);
  return `${kind} ${item} ${indexIn(event['content_index'] ?? event['summary_index']) ?? '-'}`;
}

function deltaText(event: Members, type: string, delta: string): EventText {
  return {
    channel: channelOf(event, type),
    part: partOf(type),
    path: ['delta'],
    text: delta,
    derived: derivedFrom(event, []),
  };
}

function deltaTexts(event: Members, type: string, delta: unknown): EventText[] {
  return textsIn(delta, ['delta']).map((text) => ({
    ...text,
    channel: `${channelOf(event, type)} ${JSON.stringify(text.path)}`,
    part: partOf(type),
  }));
}

/** Members beside a text that repeat it (token probabilities) or point into it (citations). */
function derivedFrom(owner: unknown, at: TextPath): NonNullable<EventText['derived']> {
  return ['logprobs', 'annotations']
    .filter((key) => Array.isArray(membersOf(owner)?.[key]))
    .map((key) => ({ path: [...at, key], json: '[]' }));
}

function endOf(event: Members, type: string): Pick<EventContent, 'ends' | 'describes'> {
  if (LAST.has(type)) return { ends: [ALL] };
  if (type.endsWith('.annotation.added')) return { describes: channelOf(event, type) };
  return type.endsWith('.done') ? { ends: [channelOf(event, type)] } : {};
}

const LAST = new Set(['response.completed', 'response.incomplete', 'response.failed']);

/** Texts of an event besides deltas. Of a response only its output: it also repeats the client's request. */
function wholeTexts(event: Members, type: string): EventText[] {
  const { response, obfuscation: _padding, ...rest } = event;
  const { output, output_text: text } = membersOf(response) ?? {};
  const texts = [
    ...textsIn(rest, []),
    ...textsIn(output, ['response', 'output']),
    ...textsIn(text, ['response', 'output_text']),
  ];
  if (!type.endsWith('.added') || type.endsWith('.annotation.added')) return texts;
  return texts.map((found) => {
    const kind = continuedKind(found, membersOf(event[String(found.path[0])])?.['type']);
    return kind === undefined ? found : { ...found, channel: channelOf(event, kind) };
  });
}

/** The kind of the deltas that continue a text at the start of an item or part. These texts are empty at OpenAI. */
function continuedKind({ path }: EventText, type: unknown): string | undefined {
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

function textsIn(value: unknown, at: TextPath): EventText[] {
  const texts: EventText[] = [];
  visitOutput(value, (text, path) => {
    const types: string[] = [];
    let owner = value;
    for (const step of path) {
      types.push(String(membersOf(owner)?.['type'] ?? ''));
      if (step !== path.at(-1)) owner = membersOf(owner)?.[step];
    }
    const full = [...at, ...path];
    const isCall = types.some((type) => CALL.test(type));
    texts.push({
      part: isCall ? 'toolCalls' : textPart(full),
      path: full,
      text,
      ...(path.length > 0 && { derived: derivedFrom(owner, full.slice(0, -1)) }),
    });
  });
  return texts;
}

const CALL = /call|tool/;

/** The part of a text that deltas of this type continue. */
function partOf(type: string): EventText['part'] {
  if (CALL.test(type)) return 'toolCalls';
  if (type.includes('reasoning')) return 'reasoning';
  return /output_text|refusal/.test(type) ? 'content' : 'other';
}
