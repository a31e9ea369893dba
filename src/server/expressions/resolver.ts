import type { VariableResolver } from '../kernel/expression.ts';
import type { RequestContext } from '../kernel/request-context.ts';
import { variableNamed } from './variable.ts';

/** Variables of a request. Most are built when first read and cached; `overrides` come first. */
export function resolverFor(
  x: RequestContext,
  overrides?: Readonly<Record<string, unknown>>,
): VariableResolver {
  const resolver: VariableResolver = (root) => {
    if (overrides !== undefined && root in overrides) return overrides[root];
    const variable = variableNamed(root);
    if (variable === undefined) return null;
    return variable.isLive ? (variable.value(x) ?? null) : x.variable(root, variable.value);
  };
  if (x.span !== undefined) resolver.span = x.span;
  if (x.observer !== undefined) {
    const peek = (root: string): unknown =>
      overrides !== undefined && root in overrides ? overrides[root] : variableOf(root, x);
    resolver.observed = { observer: x.observer, peek };
  }
  return resolver;
}

/** The value of a root variable at this moment; it is not cached. */
export function variableOf(root: string, x: RequestContext): unknown {
  return variableNamed(root)?.value(x) ?? null;
}
