import type { VariableResolver } from '../kernel/expression.ts';
import type { Fact } from '../kernel/fact.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { type Declaration, declareRoot } from './cel/declarations.ts';

/** A root variable of expressions, defined by the feature that sets it. */
export interface Variable {
  readonly name: string;
  readonly declaration: Declaration;
  /** Its value for a request; null or undefined if it is not set. */
  value(ctx: RequestContext): unknown;
  /** Its value changes while the request is handled, so it is never cached. */
  readonly isLive: boolean;
}

/** Names of the declared members. The value must have exactly these. */
export type MemberOf<D extends Declaration> = D extends { readonly members: infer M }
  ? keyof M & string
  : string;

export type Members<D extends Declaration> = Readonly<Record<MemberOf<D>, unknown>>;

/** Defines a variable. It is available once it is registered. `isLive` is false by default. */
export function defineVariable(
  name: string,
  declaration: Declaration,
  value: (ctx: RequestContext) => unknown,
  { isLive = false } = {},
): Variable {
  return { name, declaration, value, isLive };
}

/** Declarations of the members that facts define, by name. */
export function memberDeclarations<Source>(facts: readonly Fact<Source>[]): Record<string, Declaration> {
  return Object.fromEntries(
    facts.flatMap(({ cel }) => (cel === undefined ? [] : [[cel.member, { type: cel.type, doc: cel.doc }]])),
  );
}

/** Values of the members that facts define; undefined for those that are not known. */
export function memberValues<Source>(
  facts: readonly Fact<Source>[],
  source: Source,
): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const { cel, read } of facts)
    if (cel !== undefined) values[cel.member] = cel.read === undefined ? read(source) : cel.read(source);
  return values;
}

const registered = new Map<string, Variable>();

/** Registers all variables, in the order used by messages. */
export function registerVariables(variables: readonly Variable[]): void {
  for (const variable of variables) {
    registered.set(variable.name, variable);
    declareRoot(variable.name, variable.declaration);
  }
}

function variableNamed(name: string): Variable | undefined {
  return registered.get(name);
}

/** Removes members with the value undefined: a missing member evaluates as absent, an undefined one would not. */
export function defined<M extends Readonly<Record<string, unknown>>>(record: M): object {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));
}

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
