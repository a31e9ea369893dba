/** Members that say how a message is built, not what it says: ids, kinds, addresses, and the bytes of images and files. */
const STRUCTURE = new Set([
  'audio_url',
  'cache_control',
  'call_id',
  'detail',
  'encrypted_content',
  'file_data',
  'file_id',
  'finish_reason',
  'format',
  'id',
  'image_url',
  'item_id',
  'logprobs',
  'model',
  'name',
  'object',
  'role',
  'signature',
  'status',
  'tool_call_id',
  'type',
  'url',
  'video_url',
]);

/** Where a text stands in a JSON value: member names, and positions in lists. */
export type TextPath = readonly (string | number)[];

/** Deeper than any message of an API; what is deeper is not looked at, so it must not pass where looking matters. */
const MAX_DEPTH = 32;

/** Thrown for a value that is nested deeper than texts are looked for. */
export class TooDeep extends Error {}

/**
 * Calls `visit` with every text that a part of a conversation holds, wherever it stands. `position` says under which number
 * an item of a list is known, its place by default. Throws `TooDeep`.
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
  if (path.length > MAX_DEPTH) throw new TooDeep('nested too deeply');
  if (Array.isArray(value)) {
    for (const [place, item] of value.entries())
      forEachText(item, visit, position, [...path, position(item, place)]);
    return;
  }
  const isAudio = 'format' in value || 'transcript' in value;
  for (const [key, member] of Object.entries(value)) {
    if (STRUCTURE.has(key) || (isAudio && key === 'data')) continue;
    forEachText(member, visit, position, [...path, key]);
  }
}

/** UTF-8 bytes of all texts in a value; 0 for what is too deep to be one. */
export function textBytes(value: unknown): number {
  let bytes = 0;
  try {
    forEachText(value, (text) => {
      bytes += Buffer.byteLength(text);
    });
  } catch (error) {
    if (!(error instanceof TooDeep)) throw error;
  }
  return bytes;
}

/** UTF-8 bytes that a whole answer or an event of a stream says. */
export function saidBytes(value: unknown): number {
  const { choices, output, delta } = (value ?? {}) as Record<string, unknown>;
  if (typeof delta === 'string') return Buffer.byteLength(delta);
  return textBytes(choices ?? output);
}

/** Images, files and recordings in a conversation: what is no text. */
export function countMedia(value: unknown): number {
  if (!Array.isArray(value)) return 0;
  let count = 0;
  for (const item of value as unknown[]) {
    const { content, type } = (item ?? {}) as { content?: unknown; type?: unknown };
    if (typeof type === 'string' && MEDIA.test(type)) count += 1;
    count += countMedia(content);
  }
  return count;
}

const MEDIA = /image|audio|video|file/;
