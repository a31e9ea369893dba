import { isUtf8 } from 'node:buffer';
import { decodedUri } from '../../core/foreign.ts';

// Text in base64 and in `data:` URLs: documents that a model reads like any text.

/** A text of a member that may be encoded. */
export interface EncodedText {
  readonly text: string;
  /** Whether no other text can take its place. */
  readonly isFixed: boolean;
  /** Another text in the same encoding. Undefined: the text is the value itself. */
  readonly encode?: (text: string) => string;
}

/** Media types of texts (IANA). Others may be text all the same, which their bytes show. */
const TEXT_TYPE =
  /^text\/|[/+](?:json|xml|yaml|x-yaml|toml|csv|rtf|javascript|ecmascript|sql|x-sh|x-ndjson|jsonl)\b/i;

/** Media types of images, sound and video: never text, whatever the bytes are. */
const MEDIUM = /^(?:image(?!\/svg)|audio|video)\//i;

/** Characters of base64 that show whether bytes are text: 768 bytes. */
const HEAD = 1_024;

/**
 * Whether a string is base64, also in the alphabet of URLs, on one line or on long ones: prose without punctuation has the same
 * characters, but not the same lines. One pattern for all of it would overflow the stack with 30 MB.
 */
export function isBase64(value: string): boolean {
  const padding = value.indexOf('=');
  if (
    /[^\w+/=\r\n-]/.test(value) ||
    (padding !== -1 && !/^={1,2}\s*$/.test(value.slice(padding, padding + 5)))
  )
    return false;
  for (let from = 0; ; ) {
    const end = value.indexOf('\n', from);
    if (end === -1) return true;
    if (end - from < LINE && end + 1 < value.length) return false;
    from = end + 1;
  }
}

/** Characters of the shortest lines that encoders write (RFC 1421: 64). */
const LINE = 64;

/** Base64 that is shorter may be a word. */
export const WORD_LENGTH = 64;

/**
 * The texts of a member with base64: what it encodes, if that is text, and itself if it may be a word. `type`: the media type
 * that the sender gives, if any.
 */
export function textsInBase64(value: string, type: string): EncodedText[] {
  if (MEDIUM.test(type)) return [];
  const isText = TEXT_TYPE.test(type);
  const encoded = textIn(value, isText);
  const isShort = value.length < WORD_LENGTH;
  const isCertain = encoded?.isFixed === false;
  const mayBeWord = isCertain ? isShort : isText || (isShort && type === '');
  return [
    ...(encoded === undefined ? [] : [encoded]),
    ...(mayBeWord ? [{ text: value, isFixed: encoded !== undefined }] : []),
  ];
}

/** The text that base64 encodes; undefined for bytes that are not text. */
function textIn(value: string, isDeclared: boolean): EncodedText | undefined {
  if (!isDeclared && !isText(Buffer.from(value.slice(0, HEAD), 'base64'), value.length > HEAD))
    return undefined;
  const bytes = Buffer.from(value, 'base64');
  if (bytes.length > 0 && isText(bytes, false))
    return {
      text: bytes.toString('utf8'),
      isFixed: false,
      encode: (text) => Buffer.from(text).toString('base64'),
    };
  // Another encoding, such as UTF-16, of which the letters of ASCII remain.
  return isDeclared ? { text: bytes.toString('latin1').replaceAll('\0', ''), isFixed: true } : undefined;
}

/** `data:[type][;parameters][;base64],…` (RFC 2397). */
const DATA_URL = /^data:((?:[\w.+-]+\/[\w.+*-]+)?(?:;[\w.+-]+=[\w.+"-]*)*)(;base64)?,/i;

/** The texts of a `data:` URL, none if its bytes are not text; undefined for any other string. */
export function textsInDataUrl(value: string): EncodedText[] | undefined {
  const [head, type = '', isEncoded] = DATA_URL.exec(value) ?? [];
  if (head === undefined) return undefined;
  const data = value.slice(head.length);
  if (isEncoded === undefined)
    return [{ text: decodedUri(data), isFixed: false, encode: (text) => head + encodeURIComponent(text) }];
  if (!isBase64(data)) return undefined;
  return textsInBase64(data, type).map(({ text, isFixed, encode }) => ({
    text,
    isFixed,
    encode: (other) => head + (encode === undefined ? other : encode(other)),
  }));
}

/** Whether bytes are text in UTF-8 without control characters, of which no binary format is free. */
function isText(bytes: Buffer, isCut: boolean): boolean {
  if (bytes.some(isControl)) return false;
  if (isUtf8(bytes)) return true;
  // The cut may be in a character, which has up to four bytes.
  return isCut && [1, 2, 3].some((more) => isUtf8(bytes.subarray(0, -more)));
}

/** Besides tabs, line breaks, form feeds, and escapes of terminals. */
const isControl = (byte: number): boolean => byte < 9 || (byte > 13 && byte < 32 && byte !== 27);
