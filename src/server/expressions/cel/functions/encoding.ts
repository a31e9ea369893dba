import { createHash } from 'node:crypto';
import { CelEvaluationError } from '../errors.ts';
import { chargeItems, chargeRead, chargeText } from '../limits.ts';
import { mapEntries } from '../maps.ts';
import { isList, type MapKey, type Value } from '../values.ts';
import { asBytes, asString, type FunctionDefinition, fn, invalid, mismatch } from './define.ts';

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
// RFC 3986 §2.3 does not encode these characters; encodeURIComponent leaves five more unencoded.
const NOT_ENCODED_BY_JAVASCRIPT = /[!'()*]/g;

function toBase64(value: Value | undefined): string {
  const data = asBytes(value);
  chargeText(Math.ceil(data.length / 3) * 4);
  return Buffer.from(data).toString('base64');
}

function fromBase64(value: Value | undefined): Uint8Array {
  const source = asString(value);
  chargeRead(source.length);
  // Node skips what it does not know; one left-over letter holds less than a byte.
  if (!BASE64.test(source) || source.replace(/=+$/, '').length % 4 === 1)
    throw invalid('base64.decode() needs base64 text');
  return Buffer.from(source, 'base64');
}

function encodeUrl(value: Value | undefined): string {
  const source = asString(value);
  chargeText(source.length * 3);
  try {
    return encodeURIComponent(source).replace(
      NOT_ENCODED_BY_JAVASCRIPT,
      (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
    );
  } catch {
    throw invalid('url.encode() needs text without lone surrogates');
  }
}

/** Decodes `%xx`; a `%` without two digits stays, as does `+`. */
function decodeUrl(value: Value | undefined): string {
  const source = asString(value);
  chargeRead(source.length);
  try {
    return source.replace(/(?:%[0-9a-fA-F]{2})+/g, decodeURIComponent);
  } catch {
    throw invalid('url.decode() needs escapes that are UTF-8');
  }
}

/** A field that occurs several times becomes a list. */
function decodeForm(value: Value | undefined): Value {
  const source = asString(value);
  chargeRead(source.length * 4);
  const form = new Map<MapKey, Value>();
  for (const [name, entry] of new URLSearchParams(source)) {
    const earlier = form.get(name);
    form.set(name, earlier === undefined ? entry : [...(isList(earlier) ? earlier : [earlier]), entry]);
    chargeItems(earlier !== undefined && isList(earlier) ? earlier.length : form.size >> 6);
  }
  return form;
}

/** Sorted by name; null is left out, a list gives one field per item. */
function encodeForm(value: Value | undefined): string {
  const entries = mapEntries(value ?? null);
  if (entries === undefined) throw mismatch('map', value);
  const form = new URLSearchParams();
  for (const [name, entry] of entries.toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1))) {
    if (entry === null) continue;
    for (const part of isList(entry) ? entry : [entry]) {
      chargeText(asString(part).length * 3);
      form.append(String(name), asString(part));
    }
  }
  return form.toString();
}

function hash(name: string): FunctionDefinition {
  return fn(`${name}.encode`, 1, (value) => {
    const data = asBytes(value);
    // Hashing takes about 4 ns a byte at worst (md5 and sha1 on a slow core).
    chargeRead(data.length * 4);
    return createHash(name).update(data).digest('hex');
  });
}

/** Encodings and digests. */
export const encoding: readonly FunctionDefinition[] = [
  fn('base64.encode', 1, toBase64),
  fn('base64.decode', 1, fromBase64),
  fn('base64Encode', 1, toBase64),
  fn('base64Decode', 1, fromBase64),
  fn('url.encode', 1, encodeUrl),
  fn('url.decode', 1, decodeUrl),
  fn('form.encode', 1, encodeForm),
  fn('form.decode', 1, decodeForm),
  hash('sha1'),
  hash('sha256'),
  hash('md5'),
  fn('uuid', 0, () => crypto.randomUUID()),
  fn('fail', [0, 1], () => {
    throw new CelEvaluationError('failed', 'fail() was called');
  }),
];
