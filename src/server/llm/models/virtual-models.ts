import { z } from 'zod';
import { mapping, nonEmpty } from '../../../core/schema/mapping.ts';
import { nearest } from '../../../core/suggest.ts';
import { CelEvaluationError } from '../../expressions/cel/expression.ts';
import { toCel } from '../../expressions/cel/values.ts';
import { readsOfBody } from '../../expressions/read-members.ts';
import { resolverFor } from '../../expressions/variable.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { Expression } from '../../kernel/expression.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { llmError } from '../errors.ts';
import { otherCase } from '../request/read-request.ts';
import { llmRequestScope } from '../variables.ts';
import { Failover, type FailoverTarget, failoverSchema, randomByWeight } from './failover.ts';
import type { Model } from './model.ts';
import { bySpecificity, matchesModel } from './model-patterns.ts';

const target = nonEmpty.describe('Model name that matches an entry of `models`.');

const weightedSchema = z.lazy(() =>
  mapping('Selects one of several models at random, by weight.', {
    targets: z
      .array(
        z.strictObject({
          model: target,
          weight: z.int().min(0).default(1).describe('Relative frequency of the target; 0 disables it.'),
        }),
      )
      .min(1)
      .refine((targets) => targets.some(({ weight }) => weight > 0), {
        error: 'expected at least one weight greater than 0',
      })
      .describe('Models to choose from.'),
  }),
);

const conditionalSchema = z.lazy(() =>
  mapping('Selects the first model whose condition holds.', {
    targets: z
      .array(
        z.strictObject({
          model: target,
          when: nonEmpty
            .optional()
            .describe(
              'CEL expression over the request (`llmRequest`). Without it, the target always matches.',
            ),
        }),
      )
      .min(1)
      .refine((targets) => targets.slice(0, -1).every(({ when }) => when !== undefined), {
        error: 'expected the target without `when` to be the last',
      })
      .describe('Models in the order in which they are tried.'),
  }),
);

export const virtualModelSchema = z.lazy(() =>
  mapping('A name that resolves to one of several models.', {
    name: nonEmpty.describe('Exact name requested by clients.'),
    routing: z
      .strictObject({
        weighted: weightedSchema.optional(),
        failover: failoverSchema.optional(),
        conditional: conditionalSchema.optional(),
      })
      .refine((kinds) => Object.values(kinds).filter((kind) => kind !== undefined).length === 1, {
        error: 'expected exactly one of `weighted`, `failover` and `conditional`',
      })
      .describe('How a model is selected.'),
  }),
);

export type VirtualModelConfig = z.output<typeof virtualModelSchema>;

/** A model to call. `stats`, if set, are updated with the outcome. */
export interface VirtualTarget {
  readonly model: string;
  readonly stats?: FailoverTarget['stats'];
}

interface VirtualModel {
  /** Selects a target for one request; undefined if none matches. */
  choose(ctx: RequestContext, request: Readonly<Record<string, unknown>>): VirtualTarget | undefined;
  /** Selects further targets if one was not reached. */
  readonly failover?: Failover;
}

const MOST_NAMES = 12;

function knownModels(wanted: string, names: readonly string[]): string {
  const near = nearest(wanted, names);
  if (names.length === 0) return 'add an entry to `models`';
  const shown = names.slice(0, MOST_NAMES).map((name) => `\`${name}\``);
  const list = `entries of models: ${shown.join(', ')}${names.length > MOST_NAMES ? ' and others' : ''}`;
  return near === undefined ? list : `did you mean \`${near}\`? ${list}`;
}

export type VirtualModels = ReadonlyMap<string, VirtualModel>;

/**
 * Compiles virtual models. Reports targets that match no entry, and duplicate names. `configured`: names of all
 * entries, including those that failed to compile, whose own error is reported elsewhere.
 */
export function compileVirtualModels(
  configs: readonly VirtualModelConfig[],
  { models, configured }: { readonly models: readonly Model[]; readonly configured: readonly string[] },
  context: CompileContext,
): VirtualModels {
  const compiled = new Map<string, VirtualModel>();
  const entries = bySpecificity(models);
  const entryOf = (model: string): Model | undefined => entries.find(({ name }) => matchesModel(name, model));
  for (const [index, { name, routing }] of configs.entries()) {
    const at = context.at(index);
    if (compiled.has(name))
      at.at('name').report({ code: 'AGW0106', message: `two virtual models are named \`${name}\`` });
    const { weighted, failover, conditional = { targets: [] } } = routing;
    const kind = weighted ? 'weighted' : failover ? 'failover' : 'conditional';
    const place = at.at('routing', kind, 'targets');
    for (const [position, { model }] of (weighted ?? failover ?? conditional).targets.entries()) {
      if (configured.some((entry) => matchesModel(entry, model))) continue;
      place.at(position, 'model').report({
        code: 'AGW0107',
        message: `virtual model target \`${model}\` does not match any entry of \`models\``,
        help: knownModels(model, configured),
      });
    }
    if (weighted !== undefined) compiled.set(name, { choose: byWeight(weighted.targets) });
    else if (failover !== undefined)
      compiled.set(name, byFailover(new Failover(failover.targets, entryOf, name, at)));
    else compiled.set(name, { choose: byCondition(conditional.targets, place) });
  }
  return compiled;
}

const NONE: ReadonlySet<object> = new Set();

function byFailover(failover: Failover): VirtualModel {
  return { choose: () => failover.choose(NONE), failover };
}

function byWeight(
  targets: readonly { readonly model: string; readonly weight: number }[],
): VirtualModel['choose'] {
  return () => randomByWeight(targets);
}

function byCondition(
  targets: readonly { readonly model: string; readonly when?: string | undefined }[],
  place: CompileContext,
): VirtualModel['choose'] {
  const compiled = targets.map(({ model, when }, index) => ({
    model,
    when: when === undefined ? undefined : place.at(index, 'when').condition(when, llmRequestScope),
  }));
  const reads = readsOfBody(
    compiled.flatMap(({ when }) => (when === undefined ? [] : [{ expression: when }])),
    ['llmRequest'],
  );
  return (ctx, request) => {
    // The provider may read another value than the condition.
    const variant = reads.isEmpty ? undefined : reads.caseVariant(request);
    if (variant !== undefined) throw otherCase(variant.expected);
    const lookup = resolverFor(ctx, { llmRequest: toCel(request) });
    return compiled.find(({ when }) => when === undefined || holds(when, lookup));
  };
}

/** Whether a condition holds. One that fails to evaluate counts as false. */
function holds(when: Expression, lookup: ReturnType<typeof resolverFor>): boolean {
  try {
    return when.evaluate(lookup) === true;
  } catch (error) {
    if (error instanceof CelEvaluationError) return false;
    throw error;
  }
}

/** Selects the target of a virtual model for a request. Throws an `AppError` (400) if none matches. */
export function chooseTarget(
  virtual: VirtualModel,
  ctx: RequestContext,
  request: Readonly<Record<string, unknown>>,
): VirtualTarget {
  const target = virtual.choose(ctx, request);
  if (target === undefined)
    throw llmError(
      'llm_invalid',
      'virtual_model_no_matching_target',
      'No target of the model matches the request',
    );
  return target;
}
