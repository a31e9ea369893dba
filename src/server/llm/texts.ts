import { membersOf, textIn } from '../../core/foreign.ts';
import { isEmpty } from './chat/event-data.ts';

/** Members that have the bytes, the id or the URL of an image, a file or a recording, in any format. */
const MEDIA = new Set([
  'audio_url',
  'b64_json',
  'file_data',
  'fileUri',
  'file_id',
  'file_uri',
  'file_url',
  'image_url',
  'video_url',
]);

/** Members that are not text of a message: ids, types, URLs, and the bytes of images and files. */
const STRUCTURE = new Set([
  ...MEDIA,
  'cache_control',
  'call_id',
  'detail',
  'embedding',
  'encrypted_content',
  'finishReason',
  'finish_reason',
  'format',
  'id',
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
]);

/** The path of a text in a JSON value: member names and list indexes. */
export type TextPath = readonly (string | number)[];

/** Deeper than messages of any API. Deeper values are not searched, so guardrails must reject them. */
const MAX_DEPTH = 32;

/** A value is nested too deeply to search for texts. */
export class NestingError extends Error {}

/**
 * Whether a member is the JSON value of arguments or of a result of a tool, in which no name has a meaning: `input` of
 * Anthropic, `action` of the Responses API, `args` and `response` of Google. `inside` is the member that its owner is in.
 */
export function isToolValue(
  owner: Readonly<Record<string, unknown>>,
  key: string,
  inside: string | number | undefined,
): boolean {
  switch (key) {
    case 'input':
      return 'name' in owner && textIn(owner['type']).endsWith('tool_use');
    case 'action':
      return textIn(owner['type']).endsWith('_call');
    case 'args':
      return /^function_?call$/i.test(String(inside));
    case 'response':
      return /^function_?response$/i.test(String(inside));
    default:
      return false;
  }
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

/** UTF-8 bytes of all texts in a value. Texts in values deeper than those of messages are not counted. */
export function textBytes(value: unknown, inside: string | undefined = undefined, depth = 0): number {
  if (typeof value === 'string') return Buffer.byteLength(value);
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return 0;
  let bytes = 0;
  if (Array.isArray(value)) for (const item of value) bytes += textBytes(item, undefined, depth + 1);
  else
    for (const [key, member] of Object.entries(value)) {
      if (isToolValue(membersOf(value), key, inside)) bytes += stringBytes(member, depth + 1);
      else if (!STRUCTURE.has(key) && !isMedium(value, key)) bytes += textBytes(member, key, depth + 1);
    }
  return bytes;
}

/** UTF-8 bytes of all strings in a value. */
function stringBytes(value: unknown, depth: number): number {
  if (typeof value === 'string') return Buffer.byteLength(value);
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return 0;
  return Object.values(value).reduce(
    (sum: number, member: unknown) => sum + stringBytes(member, depth + 1),
    0,
  );
}

/**
 * The number of images, files and recordings in a conversation, at any depth, also in results of tools. A part counts if it has a
 * member that holds such data: APIs have too many types of parts to list them (BerriAI/litellm#36604).
 */
export function countMedia(value: unknown, inside: string | undefined = undefined, depth = 0): number {
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return 0;
  const members = membersOf(value);
  if (!Array.isArray(value) && Object.keys(members).some((key) => hasMedium(members, key))) return 1;
  let count = 0;
  for (const [key, member] of Object.entries(value))
    if (!REFERRING.has(key) && !isToolValue(members, key, inside))
      count += countMedia(member, key, depth + 1);
  return count;
}

/** Members whose ids and URLs only say where a text is from. */
const REFERRING = new Set(['annotations', 'citations', 'results']);

function hasMedium(owner: Readonly<Record<string, unknown>>, key: string): boolean {
  const isUrl = key === 'url' && (owner['type'] === 'url' || owner['type'] === 'image');
  return (isUrl || MEDIA.has(key) || isMedium(owner, key)) && !isEmpty(owner[key]);
}
