import type { RE2JS } from 're2js';
import { z } from 'zod';
import { LIMITS } from '../../core/limits.ts';
import { choice, nonEmpty } from '../../core/schema/mapping.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { Span } from '../kernel/json/json-text.ts';
import { re2 } from '../kernel/re2.ts';
import { compileRegex } from '../kernel/routing/match.ts';
import { foldedText } from './folded-text.ts';
import { type JsonPlace, numberAround, placeAfter } from './json-text.ts';
import {
  BUILTIN_NAMES,
  BUILTINS,
  type Builtin,
  PATTERN_REPLACEMENT,
  type SensitiveData,
} from './sensitive-data.ts';

/** One pattern: a kind of sensitive data, or a regular expression. */
export const ruleSchema = z
  .strictObject({
    builtin: z.enum(BUILTIN_NAMES).optional().describe('A kind of sensitive data.'),
    pattern: nonEmpty.optional().describe('A regular expression (RE2), which may match any part of a text.'),
  })
  .superRefine(({ builtin, pattern }, context) => {
    if ((builtin === undefined) !== (pattern === undefined)) return;
    context.addIssue({
      code: 'custom',
      message: 'expected exactly one of `builtin`, `pattern`',
      params: { code: 'AGW0105' },
    });
  });

/** Settings of patterns by key. */
export const patternFields = {
  action: choice(
    'What happens to a match: `mask` replaces it, by a name such as `<EMAIL_ADDRESS>` or by `<masked>`; `reject` rejects the call.',
    ['mask', 'reject'],
    'mask',
  ),
  rules: z.array(ruleSchema).min(1).describe('Patterns: `{ builtin: … }` or `{ pattern: … }`.'),
};

interface PatternConfig {
  readonly action: 'mask' | 'reject';
  readonly rules: readonly z.output<typeof ruleSchema>[];
}

/** A rule: what it is called for clients, and where it matches. */
interface Rule {
  readonly name: string;
  readonly replacement: string;
  find(text: string): Span[];
}

/** Where a text is in the stream that it is a part of. */
export interface TextPosition {
  /** Matches that start here or later do not count yet, because the text may continue there. Default: none. */
  readonly decided?: number;
  /** The character before the text. */
  readonly before?: string;
  /** The text is JSON, such as the arguments of a tool, and begins at this place of it. */
  readonly json?: JsonPlace;
}

/** Finds the matches of rules in a text that follows the character `before`, also in letters that only look different. */
function finderIn(text: string, before = ''): (rule: Rule) => Span[] {
  const whole = before + text;
  const folded = foldedText(whole);
  const find = (rule: Rule): Span[] =>
    folded === undefined
      ? rule.find(whole)
      : [...rule.find(whole), ...rule.find(folded.text).map((span) => folded.originalOf(span))];
  if (before === '') return find;
  return (rule) =>
    find(rule).flatMap(({ start, end }) =>
      start < before.length ? [] : [{ start: start - before.length, end: end - before.length }],
    );
}

/** Compiled patterns. RE2 takes linear time for every pattern and text. */
export class Patterns {
  readonly action: 'mask' | 'reject';
  readonly #rules: readonly Rule[];

  constructor(action: 'mask' | 'reject', rules: readonly Rule[]) {
    this.action = action;
    this.#rules = rules;
  }

  /** The name of the first rule that matches a part of the text, such as `email` or `rules[1]`; undefined if none does. */
  match(text: string, { decided = text.length, before }: TextPosition = {}): string | undefined {
    const find = finderIn(text, before);
    return this.#rules.find((rule) => find(rule).some(({ start }) => start < decided))?.name;
  }

  /**
   * Matches that begin in one text and end in a later one, in order and without overlaps, where the texts follow each other
   * without anything between. Of each text, `LIMITS.guardrailOverlap` characters at its beginning and end are looked at.
   */
  crossings(texts: readonly string[]): Crossing[] {
    if (texts.length < 2) return [];
    const joined = texts.join('');
    const ends: number[] = [];
    for (const text of texts) ends.push((ends.at(-1) ?? 0) + text.length);
    const matches = windowsAround(ends.slice(0, -1), joined.length)
      .flatMap(({ start: from, end: to }) => {
        const find = finderIn(joined.slice(from, to));
        return this.#rules.flatMap((rule) =>
          find(rule).map(({ start, end }) => ({ start: from + start, end: from + end, rule })),
        );
      })
      .sort((a, b) => a.start - b.start || b.end - a.end);
    const found: Crossing[] = [];
    let at = 0;
    for (const { start, end, rule } of matches) {
      if (start < at) continue;
      const parts = partsOf(ends, start, end);
      if (parts.length < 2) continue;
      found.push({ rule: rule.name, replacement: rule.replacement, parts });
      at = end;
    }
    return found;
  }

  /**
   * The text with every match replaced. Of overlapping matches, the one that starts first names the replacement. In JSON,
   * a number with a match becomes a string.
   */
  mask(text: string, { decided = text.length, before, json }: TextPosition = {}): string {
    const find = finderIn(text, before);
    const matches = this.#rules
      .flatMap((rule) => find(rule).map((span) => ({ ...span, replacement: rule.replacement })))
      .sort((a, b) => a.start - b.start || b.end - a.end);
    let masked = '';
    let at = 0;
    let place = json;
    for (const { start, end, replacement } of matches) {
      if (start >= Math.max(decided, at)) break;
      if (start < at) {
        at = Math.max(at, end);
        continue;
      }
      place = place && placeAfter(place, text.slice(at, start));
      const number = place?.isInString === false ? numberAround(text, { start, end }, at) : undefined;
      const replaced = number ?? { start, end };
      masked += text.slice(at, replaced.start) + (number ? JSON.stringify(replacement) : replacement);
      place = place && placeAfter(place, text.slice(start, replaced.end));
      at = replaced.end;
    }
    return masked + text.slice(at);
  }
}

/** A match that begins in one of several neighbouring texts and ends in a later one. */
export interface Crossing {
  readonly rule: string;
  readonly replacement: string;
  /** What it covers of each text, by its index. */
  readonly parts: readonly (Span & { readonly index: number })[];
}

/** Neighbouring texts with the matches replaced that go from one into another; the replacement is in the first of them. */
export function maskCrossings(texts: readonly string[], crossings: readonly Crossing[]): string[] {
  const masked = [...texts];
  // From the end, so that positions before stay the same.
  for (const { parts, replacement } of crossings.toReversed())
    for (const [place, { index, start, end }] of [...parts.entries()].toReversed()) {
      const text = masked[index] ?? '';
      masked[index] = text.slice(0, start) + (place === 0 ? replacement : '') + text.slice(end);
    }
  return masked;
}

/** Compiles patterns; an invalid one is reported and never matches. */
export function compilePatterns({ action, rules }: PatternConfig, context: CompileContext): Patterns {
  return new Patterns(
    action,
    rules.map((rule, index): Rule => {
      if (rule.builtin !== undefined) return builtinRule(rule.builtin);
      const compiled = compileRegex(rule.pattern ?? '', context.at('rules', index, 'pattern'));
      const find = (text: string): Span[] => matchesOf(compiled, text);
      return { name: `rules[${index}]`, replacement: PATTERN_REPLACEMENT, find };
    }),
  );
}

/** What masks builtins as `compilePatterns` does. */
export const builtinPatterns = (names: readonly Builtin[]): Patterns =>
  new Patterns('mask', names.map(builtinRule));

function builtinRule(name: Builtin): Rule {
  const { hint, replacement } = BUILTINS[name];
  const find = finderOf(BUILTINS[name]);
  return {
    name,
    replacement,
    find(text) {
      const plain = withPlainSeparators(text);
      return hint.test(plain) ? find(plain) : [];
    },
  };
}

/**
 * Models separate groups of digits also by signs of typography: spaces that do not break or are narrow, hyphens and dashes.
 * Each is replaced by one character, so that positions stay the same.
 */
function withPlainSeparators(text: string): string {
  if (!TYPOGRAPHIC.test(text)) return text;
  return text.replace(/[\u00a0\u2009\u202f]/g, ' ').replace(/[\u2010-\u2013]/g, '-');
}

const TYPOGRAPHIC = /[\u00a0\u2009\u202f\u2010-\u2013]/;

/** Finds all valid matches of a builtin. */
function finderOf({ pattern, isValid, isGreedy = false }: SensitiveData): Rule['find'] {
  const compiled = re2().compile(pattern);
  if (isValid === undefined) return (text) => matchesOf(compiled, text);
  if (!isGreedy)
    return (text) => matchesOf(compiled, text).filter(({ start, end }) => isValid(text.slice(start, end)));
  return (text) => {
    const matcher = compiled.matcher(text);
    const found: Span[] = [];
    let tries = 0;
    for (let from = 0; from < text.length && matcher.find(from); ) {
      const start = matcher.start();
      const match = text.slice(start, matcher.end());
      const length = beginningsOf(match).find((end) => {
        tries += 1;
        return tries > MAX_TRIES || isValid(match.slice(0, end));
      });
      if (length !== undefined) found.push({ start, end: start + length });
      // The data may begin at a later word of the match.
      from = start + (length ?? /[A-Za-z0-9](?![A-Za-z0-9])/.exec(match)?.index ?? match.length) + 1;
    }
    return found;
  };
}

/**
 * Validations of matches in one text, which take 10 µs each. Text with so many numbers is not prose; further matches count
 * as valid, so that a text cannot keep the gateway busy.
 */
const MAX_TRIES = 5_000;

/** Lengths of a match and of its beginnings that end with a word, longest first. */
function beginningsOf(match: string): number[] {
  const ends = [...match.matchAll(/[A-Za-z0-9](?![A-Za-z0-9])/g)].map(({ index }) => index + 1);
  return ends.reverse();
}

/** Spans around the positions, those that overlap as one. */
function windowsAround(positions: readonly number[], length: number): Span[] {
  const windows: { start: number; end: number }[] = [];
  for (const position of positions) {
    const start = Math.max(0, position - LIMITS.guardrailOverlap);
    const end = Math.min(length, position + LIMITS.guardrailOverlap);
    const last = windows.at(-1);
    if (last !== undefined && start <= last.end) last.end = end;
    else windows.push({ start, end });
  }
  return windows;
}

/** What a span of joined texts covers of each, given where they end. */
function partsOf(ends: readonly number[], start: number, end: number): Crossing['parts'] {
  const parts: (Span & { index: number })[] = [];
  // The first text that ends after the start.
  let [low, high] = [0, ends.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ends[middle] ?? 0) > start) high = middle;
    else low = middle + 1;
  }
  for (let index = low; index < ends.length; index += 1) {
    const from = ends[index - 1] ?? 0;
    if (from >= end) break;
    const to = ends[index] ?? 0;
    if (to > from) parts.push({ index, start: Math.max(start, from) - from, end: Math.min(end, to) - from });
  }
  return parts;
}

/** All matches in order, except empty ones. */
function matchesOf(pattern: RE2JS, text: string): Span[] {
  const matcher = pattern.matcher(text);
  const found: Span[] = [];
  while (matcher.find()) {
    const [start, end] = [matcher.start(), matcher.end()];
    if (end > start) found.push({ start, end });
  }
  return found;
}
