import { LIMITS } from '../../core/limits.ts';
import { tooDeep } from './json-text.ts';

/** Small, so that what a piece is put together from dies young: with 64 KiB the garbage collector takes half the time. */
const PIECE = 8 * 1024;

/** A number whose digits a double cannot hold, as it was written. */
export class NumberText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/**
 * A JSON value as YAML, in pieces: keys sorted, sequences not indented, an empty line at the end, as upstream prints
 * it. Written by hand: the YAML library builds and lays out a tree of nodes, which takes 40 times as long for 20 MB.
 */
export function yamlOf(value: unknown): readonly string[] {
  const writer = new YamlWriter();
  if (isCollection(value)) writer.collection(value, 0, false);
  else writer.line(scalar(value));
  writer.line('');
  return writer.pieces();
}

class YamlWriter {
  #out = '';
  readonly #pieces: string[] = [];

  line(text: string): void {
    this.#out += `${text}\n`;
    if (this.#out.length > PIECE) this.#cut();
  }

  pieces(): readonly string[] {
    this.#cut();
    return this.#pieces;
  }

  #cut(): void {
    // Reading a character makes one flat string of the parts, which would all be kept otherwise.
    this.#out.charCodeAt(0);
    this.#pieces.push(this.#out);
    this.#out = '';
  }

  /** `isInline`: the first entry goes on after the `- ` that has been written. */
  collection(value: object, depth: number, isInline: boolean): void {
    if (depth > LIMITS.dumpDepth) throw tooDeep();
    const indent = '  '.repeat(depth);
    let lead = isInline ? '' : indent;
    const isList = Array.isArray(value);
    for (const entry of isList ? value : sortedKeys(value)) {
      const item = isList ? entry : (value as Record<string, unknown>)[entry];
      this.#out += isList ? `${lead}- ` : `${lead}${keyText(entry)}:`;
      lead = indent;
      if (!isCollection(item)) this.line(isList ? scalar(item) : ` ${scalar(item)}`);
      else if (isList) this.collection(item, depth + 1, true);
      else {
        this.#out += '\n';
        this.collection(item, Array.isArray(item) ? depth : depth + 1, false);
      }
    }
  }
}

/** Most maps come in order already; to see that is cheaper than to sort them. */
function sortedKeys(value: object): string[] {
  const keys = Object.keys(value);
  for (let index = 1; index < keys.length; index++)
    if ((keys[index - 1] as string) > (keys[index] as string)) return keys.sort();
  return keys;
}

/** A list or map with something in it; the others fit on the line. */
function isCollection(value: unknown): value is object {
  if (typeof value !== 'object' || value === null || value instanceof NumberText) return false;
  return Array.isArray(value) ? value.length > 0 : Object.keys(value).length > 0;
}

function scalar(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return value.length < 24 ? keyText(value) : plainOrQuoted(value);
  if (value === null) return 'null';
  if (Array.isArray(value)) return '[]';
  if (value instanceof NumberText) return value.text;
  if (typeof value === 'object' && value !== null) return '{}';
  return JSON.stringify(value);
}

/** Keys and short words come again and again; looking one up takes a tenth of looking at it. */
const KEYS = new Map<string, string>();
const KEYS_KEPT = 10_000;

function keyText(key: string): string {
  let text = KEYS.get(key);
  if (text === undefined) {
    text = plainOrQuoted(key);
    if (KEYS.size < KEYS_KEPT) KEYS.set(key, text);
  }
  return text;
}

/** Words that YAML 1.1 or 1.2 readers take for something else than text. */
const RESERVED = /^(?:true|false|yes|no|on|off|y|n|null|nan|inf|~|\.nan|[-+]?\.inf)$/i;
const PLAIN = /^[A-Za-z_/$(][\w ./$()+,;=?^~@'"[\]{}<>|&*!%\\#:-]*$/;
/** `30m0s` is text for everybody; other words that begin with a digit may be numbers or dates. */
const DURATION = /^\d+(?:\.\d+)?(?:ns|us|ms|[smh])(?:\d+(?:\.\d+)?(?:ms|[smh]))*$/;
const PRINTABLE = /^[\x20-\x7e]*$/;
const ESCAPED = /[\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;

function plainOrQuoted(text: string): string {
  if (PLAIN.test(text)) {
    if (!/: | #|:$| $/.test(text) && !RESERVED.test(text)) return text;
  } else if (DURATION.test(text)) return text;
  if (PRINTABLE.test(text)) return `'${text.replaceAll("'", "''")}'`;
  return JSON.stringify(text).replace(
    ESCAPED,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
