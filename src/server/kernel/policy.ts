import type { z } from 'zod';
import type { BackendKind } from './backend.ts';
import type { CompileContext, Problem } from './compile-context.ts';
import type { Expression } from './expression.ts';
import type { PolicyTraceNames } from './request/policy-description.ts';
import type { Policy } from './request/request-context.ts';
import type { Upstreams } from './upstreams.ts';

/**
 * Where a policy can be configured, which is also when it runs: at a gateway or listener before routing, at a route after
 * it, at a backend once that was picked.
 */
export type PolicyPlace = 'gateway' | 'route' | 'backend';

/** A kind of policy: its key under `policies`, its schema (whose descriptions are its documentation), and its compiler. */
export interface PolicyKind<Key extends string = string, Schema extends z.ZodType = z.ZodType> {
  readonly key: Key;
  readonly schema: Schema;
  /** Only `route` by default. */
  readonly places?: readonly PolicyPlace[];
  /**
   * At a route, the policy stands for the same policy of its backends. It therefore takes precedence over one that a named
   * backend has for all routes.
   */
  readonly isForBackendCall?: boolean;
  /** Names in traces, if they differ from the key. */
  readonly trace?: PolicyTraceNames;
  /** Whether it can be written as `conditional`: a list of settings, of which the first that applies to a request counts. */
  readonly conditional?: boolean;
  /** Its settings that are expressions of the request phase, by path: `a.b`, `[].a`. Documented in `agctl-expressions(7)`. */
  readonly requestExpressions?: readonly string[];
  /** Its entry in configuration dumps; `{ [key]: settings }` by default. */
  dump?(config: z.output<Schema>): Readonly<Record<string, unknown>>;
  /** The policy answers every request itself, so its route needs no backend. */
  readonly answersAll?: boolean;
  /** The policy authenticates clients or restricts who may call. */
  readonly restrictsClients?: boolean;
  /** What else than rules and identity it may refuse requests by, as in "the answer of its service". */
  readonly refusesBy?: string;
  /** The variable that it sets, with a warning for routes that read the variable but do not have the policy. */
  readonly sets?: {
    /** Keys of other policies that set the same variable. */
    readonly others?: readonly string[];
    isReadBy(expression: Pick<Expression, 'roots' | 'paths'>): boolean;
    missingFrom(route: string): Problem;
  };
  /** Warns if the policy, or one of its settings, has no effect on the route. */
  checkRoute?(config: z.output<Schema>, route: PolicyRoute, context: CompileContext): void;
  /** Called when its section is new or has changed. Problems of the configuration are reported through `context`. */
  compile(config: z.output<Schema>, context: CompileContext): CompiledPolicy;
  /**
   * One policy that does what several of them do, which are attached at different levels. Of kinds without this function,
   * only the policy of the most specific level applies.
   */
  combine?(policies: readonly CompiledPolicy[]): CompiledPolicy;
}

/** What `PolicyKind.compile` returns. */
export type CompiledPolicy = Omit<Policy, 'key' | 'origin'>;

/** The part of a route that `checkRoute` gets. */
export interface PolicyRoute {
  readonly name: string;
  readonly backends: readonly PolicyBackend[];
  /** Its `matches`; undefined if it accepts every request. */
  readonly matches?: readonly { readonly path: Readonly<Record<string, unknown>> }[] | undefined;
}

/** What `checkRoute` gets of a backend. */
export interface PolicyBackend extends Pick<BackendKind, 'api' | 'countsTokens'> {
  readonly connectsTo: Upstreams;
}

/** Whether a policy of requests to an HTTP service applies to a backend. */
export const isService = ({ connectsTo }: PolicyBackend): boolean => connectsTo.kind === 'service';

/** Whether a policy of connections applies to a backend: it is an HTTP service, or the providers of models. */
export const hasConnections = ({ connectsTo: { kind } }: PolicyBackend): boolean =>
  kind === 'service' || kind === 'providers';

/** Whether an expression reads a member of a root variable. `variables()` does not count, because it returns all of them. */
export function readsMemberOf(root: string, { paths }: Pick<Expression, 'paths'>): boolean {
  return [...paths.keys()].some((path) => path.startsWith(`${root}.`));
}

/** Infers the types of a policy. The policy is available once it is listed in `policyKinds` (`features.ts`). */
export function definePolicy<Key extends string, Schema extends z.ZodType>(
  kind: PolicyKind<Key, Schema>,
): PolicyKind<Key, Schema> {
  return kind;
}
