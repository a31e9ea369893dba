import { elementsOf } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { OutputField } from '../formats/format.ts';
import { clientFormatOf, type FormatKey } from '../formats/index.ts';
import { outputFields } from '../formats/text-fields.ts';
import { type Members, membersOf } from '../json-members.ts';
import { NestingError, type TextPath } from '../texts.ts';
import type { Echo } from './echo.ts';
import { type GuardedText, jsonOf, uncheckable } from './guarded-text.ts';
import { type FoundText, guarded, ItemTexts } from './item-texts.ts';

/** The texts of a non-streaming response, per choice content first, and a function that returns it with other texts. */
export interface ResponseTexts {
  readonly texts: readonly GuardedText[];
  replaced(masked: readonly string[]): unknown;
}

const OUTPUT_NAMES: ReadonlySet<string> = new Set(outputFields.map(({ name }) => name));

/**
 * The texts of a response: of its choices, output items, content blocks or candidates, then every other string except those
 * that repeat the request. Throws an `AppError` (502) if the response is nested too deeply to check.
 */
export function responseTexts(
  response: unknown,
  format: FormatKey | undefined,
  echo: Echo | undefined,
): ResponseTexts {
  const value = membersOf(response) ?? {};
  const fields = outputFields.filter(({ name }) => Array.isArray(value[name]));
  if (fields.length > 0)
    return joined([...fields.map((field) => itemsOf(value, field)), otherMembers(value, echo)], value);
  return clientFormatOf(format)?.hasOnlyData === true
    ? asPart(otherMembers(value, echo), value)
    : everyText(response);
}

/** The texts of some members of a response. */
interface Part {
  readonly texts: readonly GuardedText[];
  /** The members with these texts, if they have changed. */
  replaced(masked: readonly string[]): Members;
}

function joined(parts: readonly Part[], value: Members): ResponseTexts {
  return {
    texts: parts.flatMap(({ texts }) => texts),
    replaced(masked) {
      let from = 0;
      const changes = parts.map((part) => {
        const own = masked.slice(from, from + part.texts.length);
        from += part.texts.length;
        return own.every((text, index) => text === part.texts[index]?.content) ? {} : part.replaced(own);
      });
      const changed: Members = Object.assign({}, value, ...changes);
      // Some providers repeat the text of all items here.
      const { output_text: _text, ...rest } = changed;
      return rest;
    },
  };
}

const asPart = (part: Part, value: Members): ResponseTexts => ({
  texts: part.texts,
  replaced: (masked) => ({ ...value, ...part.replaced(masked) }),
});

/** Every member without model output. */
function otherMembers(value: Members, echo: Echo | undefined): Part {
  const members = Object.fromEntries(
    Object.entries(value).filter(([key, member]) => !(OUTPUT_NAMES.has(key) && Array.isArray(member))),
  );
  const item = textsOf(members, undefined, LIMITS.jsonDepth);
  const isRead = item.texts.map(({ text, path }) => echo?.repeats(text, path) !== true);
  const read = item.texts.filter((_, index) => isRead[index]);
  return {
    texts: read.map((text): GuardedText => ({ ...guardedText(text), part: 'other' })),
    replaced(masked) {
      let next = 0;
      const all = item.texts.map(({ text }, index) => {
        if (isRead[index] !== true) return text;
        next += 1;
        return masked[next - 1] ?? '';
      });
      return membersOf(item.replaced(all)) ?? {};
    },
  };
}

function everyText(response: unknown): ResponseTexts {
  const isTranscript = typeof membersOf(response)?.['text'] === 'string';
  const item = textsOf(response, isTranscript ? ['text'] : undefined);
  return {
    texts: item.texts.map(guardedText),
    replaced(masked) {
      const replaced = item.replaced(masked);
      if (!isTranscript) return replaced;
      // They repeat the text of a transcript in pieces, which may have parts of what was masked.
      const { words: _words, segments: _segments, ...rest } = membersOf(replaced) ?? {};
      return rest;
    },
  };
}

function itemsOf(value: Members, field: OutputField): Part {
  const items = elementsOf(value[field.name]);
  const found = items.map((item) => textsOf(item, field.contentPath(membersOf(item) ?? {})));
  return {
    texts: found.flatMap(({ texts }, index) =>
      texts.map((text): GuardedText => {
        const run = runOf(text, field, index);
        return { ...guardedText(text), ...(run !== undefined && { run }) };
      }),
    ),
    replaced(masked) {
      let from = 0;
      const replaced = found.map((item) => {
        const own = masked.slice(from, from + item.texts.length);
        from += item.texts.length;
        return item.replaced(own);
      });
      return { [field.name]: replaced };
    },
  };
}

/** Which texts are read as one: blocks and items with text that follow each other, and blocks inside of an item. */
function runOf(
  { run, part, path }: FoundText,
  { name, areAlternatives }: OutputField,
  index: number,
): string | undefined {
  if (run !== undefined) return `${name} ${index} ${run}`;
  const isRead = (part === 'content' || part === 'reasoning') && path.length === 1;
  return isRead && areAlternatives !== true ? `${name} ${String(path[0])}` : undefined;
}

const guardedText = (text: FoundText): GuardedText => ({
  ...guarded(text),
  role: 'assistant',
  ...jsonOf(text.part, text.path),
});

function textsOf(item: unknown, contentPath: TextPath | undefined, depth?: number): ItemTexts {
  try {
    return new ItemTexts(item, contentPath, depth);
  } catch (error) {
    if (error instanceof NestingError) throw uncheckable('response', 'a text is nested too deeply');
    throw error;
  }
}
