import { setTimeout } from 'node:timers/promises';
import { durationSchema, durationText } from '../../core/duration.ts';
import { LIMITS } from '../../core/limits.ts';
import { mapping, nonEmpty } from '../../core/schema/mapping.ts';
import { tryEvaluate } from '../expressions/cel/expression.ts';
import { requestScope } from '../expressions/scopes.ts';
import { resolverFor } from '../expressions/variable.ts';
import type { CelResult } from '../kernel/expression.ts';
import { definePolicy } from '../kernel/policy.ts';

const schema = mapping('Delays requests, to test how clients and services handle slow responses.', {
  duration: nonEmpty.describe(
    `How long requests wait: a duration such as \`2s\`, or a CEL expression for a duration or a number of ms, such as \`random() < 0.1 ? 500 : 0\`. At most ${durationText(LIMITS.injectedDelay)}; zero, less, or an expression that fails is not a delay.`,
  ),
});

/** Delays requests before they are answered. The wait counts towards `timeout.requestTimeout`. */
export const delay = definePolicy({
  key: 'delay',
  requestExpressions: ['duration'],
  schema,
  trace: { kind: 'delay', stage: 'delay' },
  compile({ duration }, context) {
    const literal = durationSchema.safeParse(duration);
    if (literal.success && literal.data > LIMITS.injectedDelay)
      context.at('duration').report({
        code: 'AGW0104',
        message: `\`${duration}\` is longer than ${durationText(LIMITS.injectedDelay)}`,
        help: 'use a shorter duration',
      });
    const computed = literal.success ? undefined : context.at('duration').cel(duration, requestScope);
    return {
      async request(ctx) {
        const value = computed === undefined ? literal.data : tryEvaluate(computed, resolverFor(ctx));
        const wait = Math.min(milliseconds(value), LIMITS.injectedDelay);
        if (wait <= 0) return undefined;
        ctx.observer?.policy({ kind: 'delay', action: 'apply', reason: `waits ${Math.round(wait)} ms` });
        // Ends early if the client disconnects or the request times out, which the pipeline notices.
        await setTimeout(wait, undefined, { signal: ctx.signal }).catch(() => undefined);
        return undefined;
      },
    };
  },
});

/** A number of ms, or a CEL duration (`1.5s`), in ms. 0 for any other value. */
function milliseconds(value: CelResult | undefined): number {
  if (typeof value === 'number') return value;
  const seconds = typeof value === 'string' ? /^(-?\d+(?:\.\d+)?)s$/.exec(value)?.[1] : undefined;
  return seconds === undefined ? 0 : Number(seconds) * 1000;
}
