import type { RequestContext } from '../kernel/request-context.ts';
import { type Declaration, declareRoot } from './cel/declarations.ts';

/** A root variable of expressions: what it is, and where its value comes from. Defined by the feature that knows it. */
export interface Variable {
  readonly name: string;
  readonly declaration: Declaration;
  /** Null while it has no value. */
  value(ctx: RequestContext): unknown;
  /** It changes while the request is handled: its value is never cached. */
  readonly isLive: boolean;
}

/** Names of the declared members: the value must have these, and no others. */
export type MemberOf<D extends Declaration> = D extends { readonly members: infer M }
  ? keyof M & string
  : string;

export type Members<D extends Declaration> = Readonly<Record<MemberOf<D>, unknown>>;

/** Gives a variable its types. It exists once it is registered. */
export function defineVariable(
  name: string,
  declaration: Declaration,
  value: (ctx: RequestContext) => unknown,
  { isLive = false } = {},
): Variable {
  return { name, declaration, value, isLive };
}

const registered = new Map<string, Variable>();

/** Registers the variables of the program, in the order in which messages list them. */
export function registerVariables(variables: readonly Variable[]): void {
  for (const variable of variables) {
    registered.set(variable.name, variable);
    declareRoot(variable.name, variable.declaration);
  }
}

export function variableNamed(name: string): Variable | undefined {
  return registered.get(name);
}

/** Members without those that are not known: a missing member reads as absent, an undefined one would not. */
export function defined<M extends Readonly<Record<string, unknown>>>(record: M): object {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));
}
