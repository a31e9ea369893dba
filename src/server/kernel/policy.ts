import type { z } from 'zod';
import type { CompileContext, Problem } from './compile-context.ts';
import type { Expression } from './expression.ts';
import type { Policy, PolicyTraceNames } from './request-context.ts';

/** A policy kind: its key under `policies`, its schema (whose descriptions are its documentation), its compiler. */
export interface PolicyKind<Key extends string = string, Schema extends z.ZodType = z.ZodType> {
  readonly key: Key;
  readonly schema: Schema;
  /** Names in traces, where they differ from the key. */
  readonly trace?: PolicyTraceNames;
  /** Its entry in configuration dumps, where that is not `{ [key]: settings }`. */
  dump?(config: z.output<Schema>): Readonly<Record<string, unknown>>;
  /** It answers every request itself: a route with it needs no backend. */
  readonly answersAll?: boolean;
  /** The variable that it sets: the warning for a route that reads the variable and lacks the policy. */
  readonly sets?: {
    isReadBy(expression: Pick<Expression, 'roots' | 'paths'>): boolean;
    unset(route: string): Problem;
  };
  /** Warns where the policy, or a part of it, has no effect on the route. */
  checkRoute?(config: z.output<Schema>, route: PolicyRoute, context: CompileContext): void;
  /** Runs once per configuration load; problems of the configuration are reported through `context`. */
  compile(config: z.output<Schema>, context: CompileContext): Omit<Policy, 'key' | 'origin'>;
}

/** The route of a policy, as far as `checkRoute` looks at it. */
export interface PolicyRoute {
  readonly name: string;
  /** Each has one of the keys of `backendKinds`. */
  readonly backends: readonly Readonly<Record<string, unknown>>[];
}

/** Whether an expression reads a member of a root variable. `variables()` alone does not count: it names them all. */
export function readsMemberOf(root: string, { paths }: Pick<Expression, 'paths'>): boolean {
  return [...paths.keys()].some((path) => path.startsWith(`${root}.`));
}

/** Gives a policy its types. The policy exists once it is in `policyKinds` (`features.ts`). */
export function definePolicy<Key extends string, Schema extends z.ZodType>(
  kind: PolicyKind<Key, Schema>,
): PolicyKind<Key, Schema> {
  return kind;
}
