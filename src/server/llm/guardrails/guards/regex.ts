import { setImmediate } from 'node:timers/promises';
import { z } from 'zod';
import { withoutEscapes } from '../../../guardrails/json-text.ts';
import { ACTIONS, PHASES, tooLongToCheck } from '../../../guardrails/outcome.ts';
import {
  type Crossing,
  compilePatterns,
  maskCrossings,
  patternFields,
} from '../../../guardrails/patterns.ts';
import { defineGuard, inScope, type Verdict } from '../guard.ts';
import type { GuardedText } from '../guarded-text.ts';

const schema = z.strictObject(patternFields).describe('Patterns that are checked by the gateway itself.');

/** Masks or rejects texts that match patterns: every text in its scope, and all model output. */
export const regex = defineGuard({
  key: 'regex',
  schema,
  hasScope: true,
  hasRejection: true,
  compile(config, { phase, rejection, scope }, context) {
    const patterns = compilePatterns(config, context);
    const { guardedCharacters } = context.settings.limits;
    const counted = context.settings.counter('guardrails');
    return {
      place: context.place(),
      kind: 'regex',
      name: 'regex',
      sees: (text) => inScope(scope, text),
      async check(texts): Promise<Verdict> {
        if (texts.some(({ content }) => content.length > guardedCharacters)) {
          counted([PHASES[phase], 'Reject']);
          throw tooLongToCheck(`a text of the ${phase}`, guardedCharacters);
        }
        const verdict = patterns.action === 'reject' ? await rejected(texts) : await masked(texts);
        counted([PHASES[phase], ACTIONS[verdict.kind]]);
        return verdict;
      },
      close: () => Promise.resolve(),
    };

    async function rejected(texts: readonly GuardedText[]): Promise<Verdict> {
      for (const [index, text] of texts.entries()) {
        await turn(texts, index);
        const decoded = unescaped(text);
        const isFound =
          patterns.match(text.content, text) !== undefined ||
          (decoded !== undefined && patterns.match(decoded.content, decoded) !== undefined);
        if (isFound || splits(text).length > 0) return { kind: 'reject', rejection };
      }
      const isSplit = runsOf(texts).some(
        (run) => patterns.crossings(run.map((index) => texts[index]?.content ?? '')).length > 0,
      );
      return isSplit ? { kind: 'reject', rejection } : { kind: 'pass' };
    }

    async function masked(texts: readonly GuardedText[]): Promise<Verdict> {
      const contents: string[] = [];
      for (const [index, text] of texts.entries()) {
        await turn(texts, index);
        contents.push(maskOf(text));
      }
      for (const run of runsOf(texts)) {
        const own = run.map((index) => contents[index] ?? '');
        for (const [place, content] of maskCrossings(own, patterns.crossings(own)).entries())
          contents[run[place] ?? 0] = content;
      }
      const isChanged = contents.some((content, index) => content !== texts[index]?.content);
      if (!isChanged) return { kind: 'pass' };
      return {
        kind: 'mask',
        texts: texts.map((text, index) => ({ ...text, content: contents[index] ?? '' })),
      };
    }

    /** The text with its matches replaced, also those that JSON text has in another spelling. */
    function maskOf(text: GuardedText): string {
      const decoded = unescaped(text);
      if (decoded !== undefined && patterns.match(decoded.content, decoded) !== undefined)
        return patterns.mask(decoded.content, decoded);
      return patterns.mask(withoutSplits(text), text);
    }

    /** Matches that go from one part of a content into another. */
    function splits({ pieces }: GuardedText): Crossing[] {
      return pieces === undefined ? [] : patterns.crossings(pieces);
    }

    /** The content, with parts that share a match joined without a space. */
    function withoutSplits(text: GuardedText): string {
      const found = splits(text);
      if (found.length === 0) return text.content;
      const joined = new Set(found.flatMap(({ parts }) => parts.slice(1).map(({ index }) => index)));
      return (text.pieces ?? [])
        .map((piece, index) => (index === 0 || joined.has(index) ? piece : ` ${piece}`))
        .join('');
    }
  },
});

/** JSON text as its reader reads it: `\u0041` is `A`. Undefined if it is the same. */
function unescaped(text: GuardedText): GuardedText | undefined {
  const { content, json, decided } = text;
  const decoded = json && withoutEscapes(content, json);
  if (json === undefined || decoded === undefined) return undefined;
  if (decided === undefined) return { ...text, content: decoded };
  const before = content.slice(0, decided);
  return { ...text, content: decoded, decided: (withoutEscapes(before, json) ?? before).length };
}

/** Indexes of the texts that follow each other, for each run of several. */
function runsOf(texts: readonly GuardedText[]): number[][] {
  const runs = new Map<string, number[]>();
  for (const [index, { run }] of texts.entries()) {
    if (run === undefined) continue;
    const known = runs.get(run);
    if (known === undefined) runs.set(run, [index]);
    else known.push(index);
  }
  return [...runs.values()].filter(({ length }) => length > 1);
}

/** Lets other requests run between long texts: 64 KiB of digits take 30 ms. */
async function turn(texts: readonly GuardedText[], index: number): Promise<void> {
  if ((texts[index - 1]?.content.length ?? 0) > 65_536) await setImmediate();
}
