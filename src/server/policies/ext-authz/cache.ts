import { hash } from 'node:crypto';
import { z } from 'zod';
import { durationSchema } from '../../../core/duration.ts';
import { LIMITS } from '../../../core/limits.ts';
import { LruMap } from '../../../core/lru-map.ts';
import { mapping, nonEmpty } from '../../../core/schema/mapping.ts';
import { tryEvaluate } from '../../expressions/cel/expression.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { ExpressionScope, VariableResolver } from '../../kernel/expression.ts';

export const cacheSchema = z.lazy(() =>
  mapping('Uses an outcome for all requests with the same key. Failures of the service are not cached.', {
    key: z
      .array(nonEmpty)
      .min(1)
      .max(16)
      .describe(
        'CEL expressions for everything that the service decides by. Requests for which one of them fails are not cached.',
      ),
    ttl: nonEmpty.describe(
      'How long an outcome is used: a duration such as `5m`, or a CEL expression for a duration or for the time when it expires.',
    ),
    maxEntries: z
      .int()
      .min(1)
      .max(1_000_000)
      .default(10_000)
      .describe('Outcomes that are kept; beyond that, the least recently used is removed.'),
  }),
);

export interface Sized {
  /** Bytes that it keeps in memory, if these are many. */
  readonly size?: number;
}

/** Outcomes by key. */
export class OutcomeCache<Kept extends Sized> {
  readonly #keys: readonly ReturnType<CompileContext['cel']>[];
  readonly #ttl: number | ReturnType<CompileContext['cel']>;
  readonly #outcomes: LruMap<string, { readonly outcome: Kept; readonly expiresAt: number }>;

  constructor(
    { key, ttl, maxEntries }: z.output<typeof cacheSchema>,
    context: CompileContext,
    scope: ExpressionScope,
  ) {
    this.#outcomes = new LruMap(maxEntries);
    this.#keys = key.map((source, index) => context.at('key', index).cel(source, scope));
    const literal = durationSchema.safeParse(ttl);
    this.#ttl = literal.success ? literal.data : context.at('ttl').cel(ttl, scope);
    context.inspection.bounds.push({
      name: 'extAuthz.cache',
      at: context.path.join('.'),
      max: maxEntries,
      keepsLatest: true,
      used: () => this.#outcomes.size,
    });
  }

  /** Undefined if a part of the key fails, or is a list or map. */
  keyOf(lookup: VariableResolver): string | undefined {
    const values: unknown[] = [];
    for (const part of this.#keys) {
      const value = tryEvaluate(part, lookup);
      if (value instanceof Uint8Array) values.push({ bytes: Buffer.from(value).toString('base64') });
      else if (value === undefined || (typeof value === 'object' && value !== null)) return undefined;
      else values.push(value);
    }
    // A digest: keys contain credentials, and may be long.
    return hash('sha256', JSON.stringify(values), 'base64url');
  }

  find(key: string): Kept | undefined {
    const known = this.#outcomes.get(key);
    if (known === undefined || known.expiresAt > Date.now()) return known?.outcome;
    this.#outcomes.delete(key);
    return undefined;
  }

  /** `lookup`: of what the outcome was applied to. */
  add(key: string, outcome: Kept, lookup: VariableResolver): void {
    if ((outcome.size ?? 0) > LIMITS.cachedAuthorizationBody) return;
    const ttl =
      typeof this.#ttl === 'number'
        ? this.#ttl
        : Math.min(remaining(tryEvaluate(this.#ttl, lookup)) ?? 0, LIMITS.cachedAuthorizationTime);
    if (!(ttl > 0)) return;
    this.#outcomes.set(key, { outcome, expiresAt: Date.now() + ttl });
  }
}

/** Time in ms: of a duration, until a timestamp, or until a Unix time in seconds. */
function remaining(value: unknown): number | undefined {
  if (typeof value === 'number') return value * 1000 - Date.now();
  if (typeof value !== 'string') return undefined;
  const seconds = /^-?\d+(?:\.\d+)?s$/.test(value) ? Number(value.slice(0, -1)) * 1000 : undefined;
  if (seconds !== undefined) return seconds;
  const duration = durationSchema.safeParse(value);
  if (duration.success) return duration.data;
  // `Date.parse` makes a day of other texts, too: 2045 of `45`.
  const moment = /^\d{4}-\d\d-\d\dT/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(moment) ? undefined : moment - Date.now();
}
