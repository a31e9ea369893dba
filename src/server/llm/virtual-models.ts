import { z } from 'zod';
import { CelEvaluationError } from '../expressions/cel/expression.ts';
import { toCel } from '../expressions/cel/values.ts';
import { resolverFor } from '../expressions/resolver.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { Expression } from '../kernel/expression.ts';
import type { RequestContext } from '../kernel/request-context.ts';
import { llmError } from './errors.ts';
import { Failover, type FailoverTarget, failoverSchema } from './failover.ts';
import type { Model } from './model.ts';
import { bySpecificity, matchesModel } from './models.ts';
import { llmRequestScope } from './variables.ts';

const target = z.string().min(1).describe('Name of a model that an entry of `models` answers.');

const weightedSchema = z
  .strictObject({
    targets: z
      .array(
        z.strictObject({
          model: target,
          weight: z.int().min(0).default(1).describe('How often it is taken, beside the others.'),
        }),
      )
      .min(1)
      .refine((targets) => targets.some(({ weight }) => weight > 0), {
        error: 'expected a weight over zero',
      })
      .describe('Models to choose from.'),
  })
  .describe('One of several models by chance.');

const conditionalSchema = z
  .strictObject({
    targets: z
      .array(
        z.strictObject({
          model: target,
          when: z
            .string()
            .min(1)
            .optional()
            .describe(
              'CEL expression over the request (`llmRequest`). Without one the target is always taken.',
            ),
        }),
      )
      .min(1)
      .refine((targets) => targets.slice(0, -1).every(({ when }) => when !== undefined), {
        error: 'expected the target without `when` to be the last',
      })
      .describe('Models in the order in which they are tried.'),
  })
  .describe('The first model whose condition holds.');

export const virtualModelSchema = z
  .strictObject({
    name: z.string().min(1).describe('Name that clients ask for, exactly.'),
    routing: z
      .strictObject({
        weighted: weightedSchema.optional(),
        failover: failoverSchema.optional(),
        conditional: conditionalSchema.optional(),
      })
      .refine((kinds) => Object.values(kinds).filter((kind) => kind !== undefined).length === 1, {
        error: 'expected exactly one of `weighted`, `failover` and `conditional`',
      })
      .describe('How the model is chosen.'),
  })
  .describe('A name that stands for one of several models.');

/** A model to call; `stats`, where there are any, are told how the call went. */
export interface VirtualTarget {
  readonly model: string;
  readonly stats?: FailoverTarget['stats'];
}

interface VirtualModel {
  /** Chooses a target for one request. */
  choose(ctx: RequestContext, request: Readonly<Record<string, unknown>>): VirtualTarget | undefined;
  /** Stands in for targets that the request did not reach. */
  readonly failover?: Failover;
}

export type VirtualModels = ReadonlyMap<string, VirtualModel>;

/**
 * Compiles virtual models. Targets that no entry answers, and names that stand twice, are reported. `written` are the
 * names of all entries: one that is not among `models` has a problem of its own, which is no problem of its targets.
 */
export function compileVirtualModels(
  configs: readonly z.output<typeof virtualModelSchema>[],
  { models, written }: { readonly models: readonly Model[]; readonly written: readonly string[] },
  context: CompileContext,
): VirtualModels {
  const compiled = new Map<string, VirtualModel>();
  const entries = bySpecificity(models);
  const entryOf = (model: string): Model | undefined => entries.find(({ name }) => matchesModel(name, model));
  for (const [index, { name, routing }] of configs.entries()) {
    const at = context.at(index);
    if (compiled.has(name))
      at.at('name').report({ code: 'AGW0106', message: `two virtual models are called \`${name}\`` });
    const { weighted, failover, conditional = { targets: [] } } = routing;
    const kind = weighted ? 'weighted' : failover ? 'failover' : 'conditional';
    const place = at.at('routing', kind, 'targets');
    for (const [position, { model }] of (weighted ?? failover ?? conditional).targets.entries()) {
      if (written.some((entry) => matchesModel(entry, model))) continue;
      place.at(position, 'model').report({
        code: 'AGW0107',
        message: `virtual model target \`${model}\` does not match any entry of \`models\``,
      });
    }
    if (weighted !== undefined) compiled.set(name, { choose: byWeight(weighted.targets) });
    else if (failover !== undefined) compiled.set(name, byFailover(new Failover(failover.targets, entryOf)));
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
  const total = targets.reduce((sum, { weight }) => sum + weight, 0);
  return () => {
    let point = Math.random() * total;
    return targets.find(({ weight }) => {
      point -= weight;
      return point < 0;
    });
  };
}

function byCondition(
  targets: readonly { readonly model: string; readonly when?: string | undefined }[],
  place: CompileContext,
): VirtualModel['choose'] {
  const compiled = targets.map(({ model, when }, index) => ({
    model,
    when: when === undefined ? undefined : place.at(index, 'when').condition(when, llmRequestScope),
  }));
  return (ctx, request) => {
    const lookup = resolverFor(ctx, { llmRequest: toCel(request) });
    return compiled.find(({ when }) => when === undefined || holds(when, lookup));
  };
}

/** A condition that fails does not hold. */
function holds(when: Expression, lookup: ReturnType<typeof resolverFor>): boolean {
  try {
    return when.evaluate(lookup) === true;
  } catch (error) {
    if (error instanceof CelEvaluationError) return false;
    throw error;
  }
}

/** What a request for a virtual model is for. Throws an `AppError` (400) when no target matches it. */
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
