import { type ScalarTag, stringify, type Tags } from 'yaml';
import { LIMITS } from '../../core/limits.ts';
import { escapeUnsafe, NumberText, tooDeep } from './json-text.ts';

const EXACT_NUMBER: ScalarTag = {
  tag: 'tag:yaml.org,2002:float',
  default: true,
  identify: (value) => value instanceof NumberText,
  resolve: (text) => new NumberText(text),
  stringify: ({ value }) => (value instanceof NumberText ? value.text : String(value)),
};

/** Line breaks, and characters that could drive a terminal or reorder its text. */
const SPECIAL =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that must not reach a terminal.
  /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/;

/** Such a text is written as JSON, which is YAML too: the library escapes fewer characters, and breaks lines. */
const SPECIAL_TEXT: ScalarTag = {
  tag: 'tag:yaml.org,2002:str',
  default: true,
  identify: (value) => typeof value === 'string' && SPECIAL.test(value),
  resolve: (text) => text,
  // JSON may have a byte order mark inside, YAML not.
  stringify: ({ value }) => escapeUnsafe(JSON.stringify(value)).replaceAll('\ufeff', '\\ufeff'),
};

const OPTIONS = {
  // Quotes what a reader of YAML 1.1 would take for something else than text, such as `yes` and `2026-01-05`.
  compat: 'yaml-1.1' as const,
  customTags: (tags: Tags): Tags => [SPECIAL_TEXT, EXACT_NUMBER, ...tags],
  aliasDuplicateObjects: false,
  sortMapEntries: true,
  singleQuote: true,
  indentSeq: false,
  lineWidth: 0,
};

/**
 * A JSON value as YAML, in pieces: keys sorted, sequences not indented, an empty line at the end, as upstream prints
 * it. The library builds a tree of nodes, so each entry of a long list is laid out by itself: the pieces, joined, are
 * one document, and memory holds one entry. It takes about 0.5 s of CPU for each MB on a busy machine.
 *
 * @throws CommandError (usage) for what is nested deeper than `LIMITS.dumpDepth`
 */
export function* yamlOf(value: unknown): Generator<string> {
  if (isDeeper(value, LIMITS.dumpDepth)) throw tooDeep();
  if (isFilledList(value)) for (const item of value) yield stringify([item], OPTIONS);
  else if (isFilledMap(value))
    for (const key of Object.keys(value).toSorted()) {
      const member = value[key];
      const [first, ...others] = isFilledList(member) ? member.map((item) => [item]) : [member];
      yield stringify({ [key]: first }, OPTIONS);
      for (const item of others) yield stringify(item, OPTIONS);
    }
  else yield stringify(value, OPTIONS);
  yield '\n';
}

const isFilledList = (value: unknown): value is unknown[] => Array.isArray(value) && value.length > 0;

function isFilledMap(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return !(value instanceof NumberText) && Object.keys(value).length > 0;
}

function isDeeper(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return depth < 0 || Object.values(value).some((item) => isDeeper(item, depth - 1));
}
