import { z } from 'zod';
import { mapping, nonEmpty } from '../../../core/schema/mapping.ts';
import { nearest } from '../../../core/suggest.ts';
import { CelEvaluationError } from '../../expressions/cel/expression.ts';
import { toCel } from '../../expressions/cel/values.ts';
import { problemOf, readsOfBody } from '../../expressions/read-members.ts';
import { resolverFor } from '../../expressions/variable.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { Expression } from '../../kernel/expression.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { llmError } from '../errors.ts';
import { llmRequestScope } from '../variables.ts';
import { Failover, type FailoverTarget, failoverSchema, randomByWeight } from './failover.ts';
import { type Model, replacingName } from './model.ts';
import { bySpecificity, matchesModel, modelNameSchema } from './model-patterns.ts';

const target = nonEmpty.describe(
  'Model name that matches an entry of `models`. A `*` in it stands for the text that the one in `name` of the virtual model matched.',
);

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
    name: modelNameSchema.describe(
      'Names requested by clients: one name, `*`, `prefix*` or `*suffix`. The most specific one is used.',
    ),
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
  /** A name or a pattern. */
  readonly name: string;
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

/** By name: patterns last, the most specific of them first. */
export type VirtualModels = ReadonlyMap<string, VirtualModel>;

/** The virtual model for a requested name. */
export function virtualModelOf(models: VirtualModels, requested: string): VirtualModel | undefined {
  const exact = models.get(requested);
  if (exact !== undefined || models.size === 0) return exact;
  for (const model of models.values()) if (matchesModel(model.name, requested)) return model;
  return undefined;
}

/** The target with the name of the model to call: a pattern of the virtual model may leave it open. */
export function namedTarget<T extends VirtualTarget>(
  { name }: VirtualModel,
  target: T,
  requested: string,
): T {
  const model = replacingName({ name, model: target.model }, requested) ?? target.model;
  return model === target.model ? target : { ...target, model };
}

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
  const add = (name: string, model: Omit<VirtualModel, 'name'>): void => {
    compiled.set(name, { name, ...model });
  };
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
    if (weighted !== undefined) add(name, { choose: byWeight(weighted.targets) });
    else if (failover !== undefined) add(name, byFailover(new Failover(failover.targets, entryOf, name, at)));
    else add(name, { choose: byCondition(conditional.targets, place) });
  }
  const [exact, patterns] = [false, true].map((isPattern) =>
    [...compiled.values()].filter(({ name }) => name.includes('*') === isPattern),
  );
  return new Map([...(exact ?? []), ...bySpecificity(patterns ?? [])].map((model) => [model.name, model]));
}

const NONE: ReadonlySet<object> = new Set();

function byFailover(failover: Failover): Omit<VirtualModel, 'name'> {
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
    const variant = reads.isEmpty ? undefined : reads.variant(request);
    if (variant !== undefined)
      throw llmError(
        'llm_invalid',
        'invalid_request_body',
        `LLM request body: the member ${problemOf(variant)}`,
      );
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
