import type { VariableResolver } from '../kernel/expression.ts';
import type { RequestContext } from '../kernel/request-context.ts';
import { variableNamed } from './variable.ts';

/** Resolves the variables of a request. Most are created when first read and then cached. `overrides` take precedence. */
export function resolverFor(
  ctx: RequestContext,
  overrides?: Readonly<Record<string, unknown>>,
): VariableResolver {
  const resolver: VariableResolver = (root) => {
    if (overrides !== undefined && root in overrides) return overrides[root];
    const variable = variableNamed(root);
    if (variable === undefined) return null;
    return variable.isLive ? (variable.value(ctx) ?? null) : ctx.variable(root, variable.value);
  };
  if (ctx.span !== undefined) resolver.span = ctx.span;
  if (ctx.observer !== undefined) {
    const peek = (root: string): unknown =>
      overrides !== undefined && root in overrides ? overrides[root] : variableOf(root, ctx);
    resolver.observed = { observer: ctx.observer, peek };
  }
  return resolver;
}

/** The current value of a root variable, without caching it. */
export function variableOf(root: string, ctx: RequestContext): unknown {
  return variableNamed(root)?.value(ctx) ?? null;
}
