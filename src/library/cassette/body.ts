import { brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } from 'node:zlib';
import { messageOf } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { parseExactly } from '../../server/llm/chat/exact-json.ts';
import type { Body } from './format.ts';

type Decode = (bytes: Uint8Array, options: { maxOutputLength: number }) => Buffer;

const DECODERS: ReadonlyMap<string, Decode> = new Map<string, Decode>([
  ['gzip', gunzipSync],
  ['x-gzip', gunzipSync],
  ['deflate', inflateSync],
  ['br', brotliDecompressSync],
  ['zstd', zstdDecompressSync],
]);

/** A message as it was received. */
export interface Received {
  readonly bytes: Uint8Array;
  readonly type: string;
  /** Content coding. */
  readonly coding: string;
}

/** The content without its coding: it is not replayed with one. Undefined if there is none. */
export async function bodyOf({ bytes, type, coding }: Received): Promise<Body | undefined> {
  if (bytes.byteLength === 0) return undefined;
  let plain = bytes;
  if (coding !== '' && coding !== 'identity') {
    const decode = DECODERS.get(coding.toLowerCase());
    if (decode === undefined) return { omitted: `the content coding ${coding} is not known` };
    try {
      plain = decode(bytes, { maxOutputLength: LIMITS.cassetteBodyBytes });
    } catch (error) {
      return { omitted: `it could not be decoded from ${coding}: ${messageOf(error)}` };
    }
  }
  return contentOf(plain, type);
}

async function contentOf(bytes: Uint8Array, type: string): Promise<Body> {
  if (/^multipart\/form-data\b/i.test(type)) {
    const form = await formOf(bytes, type);
    if (form !== undefined) return form;
  }
  const text = textOf(bytes);
  if (text === undefined) return { base64: Buffer.from(bytes).toString('base64') };
  const json = type === '' || /\bjson\b/i.test(type) ? parseExactly(text) : undefined;
  return json === undefined ? { text } : { json };
}

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Without its boundary, which is another one each time. */
async function formOf(bytes: Uint8Array, type: string): Promise<Body | undefined> {
  try {
    const data = await new Response(Buffer.from(bytes), { headers: { 'content-type': type } }).formData();
    const parts = [...data].map(async ([name, value]) => {
      if (typeof value === 'string') return { name, text: value };
      const content = new Uint8Array(await value.arrayBuffer());
      const text = textOf(content);
      const file = { name, filename: value.name, type: value.type };
      return text === undefined
        ? { ...file, base64: Buffer.from(content).toString('base64') }
        : { ...file, text };
    });
    return { form: await Promise.all(parts) };
  } catch {
    return undefined;
  }
}

/** The content to send, for `fetch` and `Response`; undefined if there is none. */
export function contentToSend(body: Body | undefined): string | Buffer | FormData | undefined {
  if (body === undefined || 'omitted' in body) return undefined;
  if ('json' in body) return JSON.stringify(body.json);
  if ('text' in body) return body.text;
  if ('base64' in body) return Buffer.from(body.base64, 'base64');
  const data = new FormData();
  for (const { name, filename, type = '', text = '', base64 } of body.form) {
    if (filename === undefined) data.append(name, text);
    else
      data.append(
        name,
        new Blob([base64 === undefined ? text : Buffer.from(base64, 'base64')], { type }),
        filename,
      );
  }
  return data;
}
