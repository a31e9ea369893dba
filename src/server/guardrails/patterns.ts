import type { RE2JS } from 're2js';
import { z } from 'zod';
import { re2 } from '../../core/re2.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { Span } from '../kernel/json-text.ts';
import { compileRegex } from '../kernel/match.ts';
import { BUILTINS, type Builtin, PATTERN_REPLACEMENT } from './sensitive-data.ts';

const ruleSchema = z
  .strictObject({
    builtin: z
      .enum(Object.keys(BUILTINS) as [Builtin, ...Builtin[]])
      .optional()
      .describe('A kind of sensitive data.'),
    pattern: z
      .string()
      .min(1)
      .optional()
      .describe('A regular expression (RE2), which may match any part of a text.'),
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
  action: z
    .enum(['mask', 'reject'])
    .default('mask')
    .describe(
      'What happens to a match: `mask` replaces it, by a name such as `<EMAIL_ADDRESS>` or by `<masked>`; `reject` rejects the call.',
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

/** Compiled patterns. RE2 takes linear time for every pattern and text. */
export class Patterns {
  readonly action: 'mask' | 'reject';
  readonly #rules: readonly Rule[];

  constructor(action: 'mask' | 'reject', rules: readonly Rule[]) {
    this.action = action;
    this.#rules = rules;
  }

  /**
   * The name of the first rule that matches a part of the text, such as `email` or `rules[1]`; undefined if none does.
   * Matches that start at `decided` or later do not count: the text may continue there.
   */
  match(text: string, decided = text.length): string | undefined {
    return this.#rules.find((rule) => rule.find(text).some(({ start }) => start < decided))?.name;
  }

  /**
   * The text with every match that starts before `decided` replaced. Of overlapping matches, the one that starts first
   * names the replacement.
   */
  mask(text: string, decided = text.length): string {
    const found = this.#rules
      .flatMap(({ find, replacement }) => find(text).map((span) => ({ ...span, replacement })))
      .sort((a, b) => a.start - b.start || b.end - a.end);
    let masked = '';
    let at = 0;
    for (const { start, end, replacement } of found) {
      if (start >= Math.max(decided, at)) break;
      if (start >= at) masked += text.slice(at, start) + replacement;
      at = Math.max(at, end);
    }
    return masked + text.slice(at);
  }
}

/** Compiles patterns; an invalid one is reported and never matches. */
export function compilePatterns({ action, rules }: PatternConfig, context: CompileContext): Patterns {
  return new Patterns(
    action,
    rules.map((rule, index): Rule => {
      if (rule.builtin !== undefined) {
        const { pattern, hint, replacement, isValid = () => true } = BUILTINS[rule.builtin];
        const compiled = re2().compile(pattern);
        const find = (text: string): Span[] =>
          hint.test(text)
            ? matchesOf(compiled, text).filter(({ start, end }) => isValid(text.slice(start, end)))
            : [];
        return { name: rule.builtin, replacement, find };
      }
      const compiled = compileRegex(rule.pattern ?? '', context.at('rules', index, 'pattern'));
      const find = (text: string): Span[] => matchesOf(compiled, text);
      return { name: `rules[${index}]`, replacement: PATTERN_REPLACEMENT, find };
    }),
  );
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
