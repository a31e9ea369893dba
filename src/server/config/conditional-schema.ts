import { z } from 'zod';
import { mapping, nonEmpty } from '../../core/schema/mapping.ts';
import type { PolicyKind } from '../kernel/policy.ts';

/** As upstream: more entries are better written as one expression. */
const MAX_ENTRIES = 64;

/** The entries of a policy that is written as `conditional`, each with the settings of its kind. */
export interface ConditionalConfig {
  readonly conditional: readonly ({ readonly condition?: string | undefined } & Readonly<
    Record<string, unknown>
  >)[];
}

export function isConditional(config: unknown): config is ConditionalConfig {
  return typeof config === 'object' && config !== null && 'conditional' in config;
}

/**
 * The settings of one entry as settings of the kind. Of a kind whose settings are a list, an entry is one item of it.
 */
export function entrySettings(
  kind: PolicyKind,
  { condition: _condition, ...settings }: ConditionalConfig['conditional'][number],
): unknown {
  return kind.schema instanceof z.ZodArray ? [settings] : settings;
}

/**
 * The settings of a kind, or `conditional` with several of them if the kind has that form. The second form is built when
 * a configuration has such a policy: those of all kinds are a tenth of all schemas.
 */
export function withConditional(kind: PolicyKind): z.ZodType {
  if (kind.conditional !== true) return kind.schema;
  const known = schemas.get(kind.schema) ?? z.lazy(() => unionOf(kind));
  schemas.set(kind.schema, known);
  return known;
}

/** Built once for each kind: advice on errors compares schemas by identity. */
const schemas = new WeakMap<z.ZodType, z.ZodType>();

/** The schema itself, if its kind builds it at its first use. */
const built = (schema: z.ZodType): z.ZodType =>
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- schemas are made with this package, not with its core
  schema instanceof z.ZodLazy ? (schema._zod.innerType as z.ZodType) : schema;

function unionOf(kind: PolicyKind): z.ZodType {
  const { schema } = kind;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as above
  const settings = built(schema instanceof z.ZodArray ? (schema.element as z.ZodType) : schema);
  if (!(settings instanceof z.ZodObject)) throw new Error(`${kind.key} has no form with conditions`);
  const entry = settings.safeExtend({
    condition: nonEmpty
      .optional()
      .describe('CEL expression: the entry applies if it is true. The last entry may have none.'),
  });
  const conditional = mapping('The policy depends on the request.', {
    conditional: z
      .array(entry)
      .min(1)
      .max(MAX_ENTRIES)
      .superRefine((entries, context) => {
        const early = entries.findIndex(
          (each, index) => each['condition'] === undefined && index < entries.length - 1,
        );
        if (early === -1) return;
        context.addIssue({
          code: 'custom',
          path: [early],
          message: 'an entry without `condition` must be the last one',
          params: { code: 'AGW0104', help: 'later entries would never apply: add a condition, or move it' },
        });
      })
      .describe('Entries, of which the first whose condition is true applies.'),
  });
  return z.union([schema, conditional]).describe(built(schema).description ?? '');
}

/** Whether the policy applies to every request: it has no conditions, or an entry without one. */
export function appliesAlways(config: unknown): boolean {
  return !isConditional(config) || config.conditional.at(-1)?.condition === undefined;
}

/** The settings of a policy, or those of each of its entries. */
export function allSettings(kind: PolicyKind, config: unknown): unknown[] {
  return isConditional(config) ? config.conditional.map((entry) => entrySettings(kind, entry)) : [config];
}
