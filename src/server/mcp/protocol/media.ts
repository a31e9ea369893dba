const isText = (value: unknown): value is string => typeof value === 'string';

/** How base64 of files of each type begins; a server that does not say which it is sends one of these. */
const STARTS: Readonly<Record<'image' | 'audio', readonly (readonly [start: string, type: string])[]>> = {
  image: [
    ['iVBORw0KGgo', 'image/png'],
    ['/9j/', 'image/jpeg'],
    ['R0lGOD', 'image/gif'],
    ['UklGR', 'image/webp'],
  ],
  audio: [
    ['UklGR', 'audio/wav'],
    ['SUQz', 'audio/mpeg'],
    ['T2dnUw', 'audio/ogg'],
  ],
};

/** "If no type is known": RFC 2046 §4.5.1. */
const UNKNOWN_TYPE = 'application/octet-stream';

/** As `atob`, with which the TypeScript SDK checks it: white space is ignored. */
export const isBase64 = (value: unknown): value is string =>
  isText(value) && !/[^A-Za-z0-9+/=\s]/.test(value);

/** Base64 as MCP requires it, of base64url too; undefined for what is neither. */
export function base64Of(value: unknown): string | undefined {
  const standard = isText(value) ? value.replaceAll('-', '+').replaceAll('_', '/') : undefined;
  return isBase64(standard) ? standard : undefined;
}

/**
 * An image or sound as MCP requires it, whose members may be wrong: a data URL or base64url instead of base64, and no type. Undefined
 * without data.
 */
export function mediaOf(
  kind: 'image' | 'audio',
  { data, mimeType }: Readonly<Record<string, unknown>>,
): { readonly data: string; readonly mimeType: string } | undefined {
  if (!isText(data)) return undefined;
  const [prefix = '', said] = /^data:([^;,]*)[^,]{0,200},/.exec(data) ?? [];
  const base64 = base64Of(data.slice(prefix.length));
  if (base64 === undefined) return undefined;
  const found = STARTS[kind].find(([start]) => base64.startsWith(start))?.[1];
  return { data: base64, mimeType: isText(mimeType) ? mimeType : said || found || UNKNOWN_TYPE };
}
