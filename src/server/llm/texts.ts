import { membersOf } from '../../core/foreign.ts';

/** Members that are not text of a message: ids, types, URLs, and the bytes of images and files. */
const STRUCTURE = new Set([
  'audio_url',
  'b64_json',
  'cache_control',
  'call_id',
  'detail',
  'embedding',
  'encrypted_content',
  'file_data',
  'fileUri',
  'file_id',
  'file_uri',
  'finishReason',
  'finish_reason',
  'format',
  'id',
  'image_url',
  'item_id',
  'jsonPath',
  'logprobs',
  'logprobsResult',
  'media_type',
  'mimeType',
  'mime_type',
  'model',
  'name',
  'object',
  'role',
  'signature',
  'thoughtSignature',
  'thought_signature',
  'status',
  'tool_call_id',
  'type',
  'url',
  'video_url',
]);

/** The path of a text in a JSON value: member names and list indexes. */
export type TextPath = readonly (string | number)[];

/** Deeper than messages of any API. Deeper values are not searched, so guardrails must reject them. */
const MAX_DEPTH = 32;

/** A value is nested too deeply to search for texts. */
export class NestingError extends Error {}

/**
 * Calls `visit` with every non-empty text in a value, at any depth up to 32. `position` maps a list item to the index
 * used in paths; default: its index in the list. Throws `NestingError`.
 */
export function forEachText(
  value: unknown,
  visit: (text: string, path: TextPath) => void,
  position: (item: unknown, place: number) => number = (_, place) => place,
  path: TextPath = [],
): void {
  if (typeof value === 'string') {
    if (value !== '') visit(value, path);
    return;
  }
  if (typeof value !== 'object' || value === null) return;
  if (path.length > MAX_DEPTH) throw new NestingError('nested too deeply');
  if (Array.isArray(value)) {
    for (const [place, item] of value.entries())
      forEachText(item, visit, position, [...path, position(item, place)]);
    return;
  }
  for (const [key, member] of Object.entries(value)) {
    if (isToolValue(value, key, path)) forEachString(member, visit, [...path, key]);
    else if (!STRUCTURE.has(key) && !isMedium(value, key))
      forEachText(member, visit, position, [...path, key]);
  }
}

/**
 * Whether a member is the JSON value of arguments or of a result of a tool, in which no name has a meaning: `input` of
 * Anthropic, `action` of the Responses API, `args` and `response` of Google.
 */
function isToolValue(owner: object, key: string, path: TextPath): boolean {
  const { type } = owner as { type?: unknown };
  switch (key) {
    case 'input':
      return typeof type === 'string' && type.endsWith('tool_use') && 'name' in owner;
    case 'action':
      return typeof type === 'string' && type.endsWith('_call');
    case 'args':
      return /^function_?call$/i.test(String(path.at(-1)));
    case 'response':
      return /^function_?response$/i.test(String(path.at(-1)));
    default:
      return false;
  }
}

/** Calls `visit` with every non-empty string in a value, at any depth up to 32. Throws `NestingError`. */
function forEachString(value: unknown, visit: (text: string, path: TextPath) => void, path: TextPath): void {
  if (typeof value === 'string' && value !== '') visit(value, path);
  if (typeof value !== 'object' || value === null) return;
  if (path.length > MAX_DEPTH) throw new NestingError('nested too deeply');
  const isList = Array.isArray(value);
  for (const [key, member] of Object.entries(value))
    forEachString(member, visit, [...path, isList ? Number(key) : key]);
}

/** Calls `visit` with every number in a value that `forEachText` has searched. */
export function forEachNumber(
  value: unknown,
  visit: (text: string, path: TextPath) => void,
  path: TextPath,
): void {
  if (typeof value === 'number') visit(String(value), path);
  if (typeof value !== 'object' || value === null) return;
  const isList = Array.isArray(value);
  for (const [key, member] of Object.entries(value))
    forEachNumber(member, visit, [...path, isList ? Number(key) : key]);
}

/** Members beside the bytes of a recording, or of a file of `generateContent`. */
const BESIDE_DATA = ['format', 'transcript', 'mimeType', 'mime_type'];

/** Whether a member has the bytes of a recording, also of a realtime session, of an image of `/v1/messages`, or of a generated image. */
function isMedium(owner: object, key: string): boolean {
  const { type } = owner as { type?: unknown };
  if (key === 'data') return BESIDE_DATA.some((name) => name in owner) || type === 'base64';
  if (key === 'audio') return type === 'input_audio' || type === 'output_audio';
  return key === 'result' && type === 'image_generation_call';
}

/**
 * The part of a message that a text belongs to. `content` includes refusals, which models send instead; `toolCalls` the
 * arguments of calls; `other` is for example the title of a document.
 */
export type TextPart = 'content' | 'toolCalls' | 'reasoning' | 'other';

/** The part of the text at a path in a message, a choice, an output item or an event. */
export function textPart(path: TextPath): TextPart {
  if (path.some((step) => CALL_MEMBERS.has(step))) return 'toolCalls';
  if (path.some((step) => typeof step === 'string' && /reason|think|^summary$/.test(step)))
    return 'reasoning';
  const member = path.findLast((step) => typeof step === 'string');
  return member === undefined || CONTENT_MEMBERS.has(member) ? 'content' : 'other';
}

const CALL_MEMBERS = new Set<string | number>([
  'tool_calls',
  'function_call',
  'functionCall',
  'action',
  'arguments',
  'input',
]);
const CONTENT_MEMBERS = new Set<string | number>(['content', 'text', 'refusal']);

/** UTF-8 bytes of all texts in a value. Texts after a value that is nested too deeply are not counted. */
export function textBytes(value: unknown): number {
  let bytes = 0;
  try {
    forEachText(value, (text) => {
      bytes += Buffer.byteLength(text);
    });
  } catch (error) {
    if (!(error instanceof NestingError)) throw error;
  }
  return bytes;
}

/** The number of images, files and recordings in a conversation. */
export function countMedia(value: unknown): number {
  if (!Array.isArray(value)) return 0;
  let count = 0;
  for (const item of value as unknown[]) {
    const { content, parts, type } = membersOf(item);
    if (typeof type === 'string' ? MEDIA.test(type) : hasFile(item)) count += 1;
    count += countMedia(content) + countMedia(parts);
  }
  return count;
}

const MEDIA = /image|audio|video|file/;

/** Whether a part of `generateContent` is a file. */
const hasFile = (part: unknown): boolean =>
  typeof part === 'object' &&
  part !== null &&
  ['inlineData', 'inline_data', 'fileData', 'file_data'].some((name) => name in part);
