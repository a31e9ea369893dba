import { type ConditionalConfig, entrySettings, isConditional } from '../config/conditional-schema.ts';
import { tryEvaluate } from '../expressions/cel/expression.ts';
import { readsOfBody, rejectVariants } from '../expressions/read-members.ts';
import { requestScope } from '../expressions/scopes.ts';
import { resolverFor } from '../expressions/variable.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { TracedExpression } from '../kernel/expression.ts';
import type { CompiledPolicy, PolicyKind } from '../kernel/policy.ts';
import type { Reply, RequestContext } from '../kernel/request/request-context.ts';

interface Entry {
  /** Undefined for the last entry, which then always applies. */
  readonly condition: TracedExpression | undefined;
  readonly policy: CompiledPolicy;
}

/** Compiles a policy, or the entries of its `conditional`. */
export function compileKind(kind: PolicyKind, config: unknown, context: CompileContext): CompiledPolicy {
  return isConditional(config) ? compileConditional(kind, config, context) : kind.compile(config, context);
}

/** Compiles entries, of which the first whose condition is true runs. A condition that fails is not true. */
function compileConditional(
  kind: PolicyKind,
  { conditional }: ConditionalConfig,
  context: CompileContext,
): CompiledPolicy {
  const entries = conditional.map((config, index): Entry => {
    const at = context.at('conditional', index);
    const { condition } = config;
    const settings = entrySettings(kind, config);
    return {
      condition: condition === undefined ? undefined : at.at('condition').condition(condition, requestScope),
      policy: kind.compile(settings, contextOf(at, index, Array.isArray(settings))),
    };
  });
  const reads = readsOfBody(
    entries.flatMap(({ condition }) => (condition === undefined ? [] : [{ expression: condition }])),
  );
  /** The entry that applies to a request, for its response phase. */
  const chosen = new WeakMap<RequestContext, CompiledPolicy>();
  return {
    request(ctx) {
      // Otherwise a body could choose another entry than its content should.
      rejectVariants(reads, ctx);
      const entry = entries.find(
        ({ condition }) => condition === undefined || tryEvaluate(condition, resolverFor(ctx)) === true,
      );
      if (entry === undefined) {
        ctx.observer?.policy({ kind: kind.key, action: 'skip', reason: 'no condition is true' });
        return undefined;
      }
      chosen.set(ctx, entry.policy);
      return entry.policy.request?.(ctx);
    },
    ...(entries.some(({ policy }) => policy.response !== undefined) && {
      response: (ctx: RequestContext, reply: Reply) => chosen.get(ctx)?.response?.(ctx, reply),
    }),
    async close() {
      await Promise.all(entries.map(({ policy }) => policy.close?.()));
    },
  };
}

/**
 * The context of an entry, with a state of its own. An entry that stands for the only item of a list has no index in the
 * paths of the file.
 */
function contextOf(context: CompileContext, index: number, isItem: boolean): CompileContext {
  return {
    ...context,
    identity: (name) => context.identity(`${index}/${name}`),
    shared: (name, operations, receive) => context.shared(`${index}/${name}`, operations, receive),
    at: (...path) => (isItem && path[0] === 0 ? context.at(...path.slice(1)) : context.at(...path)),
  };
}
