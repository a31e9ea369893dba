import type { Source } from './chat.ts';

const DATA_URL = /^data:([^;,]*)((?:;[^;,]*)*);base64,/i;

/** The content of a Base64 data URL (RFC 2397); undefined if it is another URL. */
export function parseDataUrl(url: string): Extract<Source, { kind: 'data' }> | undefined {
  const match = DATA_URL.exec(url);
  if (match === null) return undefined;
  // The default of RFC 2397.
  const mediaType = match[1] || 'text/plain';
  return { kind: 'data', mediaType: registeredType(mediaType), data: url.slice(match[0].length) };
}

/** The registered name of a media type. Browsers and clients also write `image/jpg`, which Claude and Bedrock refuse. */
export function registeredType(mediaType: string): string {
  const name = mediaType.toLowerCase();
  return name === 'image/jpg' ? 'image/jpeg' : name;
}

export function dataUrl({ mediaType, data }: { mediaType: string; data: string }): string {
  return `data:${mediaType};base64,${data}`;
}

/**
 * The content of `file_data`. The API reference of OpenAI calls it Base64, and its examples are data URLs. PDF is the
 * type that all models read.
 */
export function fileData(data: string): Extract<Source, { kind: 'data' }> {
  return parseDataUrl(data) ?? { kind: 'data', mediaType: 'application/pdf', data };
}
