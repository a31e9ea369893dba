import { setImmediate } from 'node:timers/promises';
import { z } from 'zod';
import { ACTIONS, GuardrailError, PHASES } from '../../../guardrails/outcome.ts';
import { compilePatterns, patternFields } from '../../../guardrails/patterns.ts';
import { defineGuard, type Guard, inScope, type Verdict } from '../guard.ts';
import type { GuardedText } from '../guarded-text.ts';

const schema = z.strictObject(patternFields).describe('Patterns that are checked by the gateway itself.');

/** Masks or rejects texts that match patterns: every text in its scope, and all model output. */
export const regex = defineGuard({
  key: 'regex',
  schema,
  hasScope: true,
  hasRejection: true,
  compile(config, { phase, rejection, scope }, context): Guard {
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
          throw new GuardrailError(`a text of the ${phase} has more than ${guardedCharacters} characters`);
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
        if (patterns.match(text.content, text) !== undefined) return { kind: 'reject', rejection };
      }
      return { kind: 'pass' };
    }

    async function masked(texts: readonly GuardedText[]): Promise<Verdict> {
      const results: GuardedText[] = [];
      for (const [index, text] of texts.entries()) {
        await turn(texts, index);
        results.push({ ...text, content: patterns.mask(text.content, text) });
      }
      const isChanged = results.some(({ content }, index) => content !== texts[index]?.content);
      return isChanged ? { kind: 'mask', texts: results } : { kind: 'pass' };
    }
  },
});

/** Lets other requests run between long texts: 64 KiB of digits take 30 ms. */
async function turn(texts: readonly GuardedText[], index: number): Promise<void> {
  if ((texts[index - 1]?.content.length ?? 0) > 65_536) await setImmediate();
}
