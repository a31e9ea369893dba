import type { RE2JS } from 're2js';
import type { TracePlace } from '../../../core/trace/event.ts';
// oxlint-disable-next-line import/no-cycle -- see request-context.ts.
import type { Backend, ClientApi, PathMatcher, Policy, RequestContext } from '../request/request-context.ts';

// What a configuration is compiled to: listeners with their routes, which the router finds and the pipeline runs.

/** A backend with its weight, which determines its share of the requests. */
export interface WeightedBackend {
  readonly weight: number;
  readonly backend: Backend;
  /** Run once this backend was picked, in the order of `policyKinds`. */
  readonly policies: readonly Policy[];
  /** For traces: what the backend itself does to all its calls. */
  readonly ownPolicies: readonly Pick<Policy, 'key' | 'origin'>[];
  /** Its name in the configuration dump, for metrics. */
  readonly name: string;
}

/** A condition on a text: it is equal, or a regular expression matches all of it (RE2: linear time on any input). */
export type TextMatcher = { readonly exact: string } | { readonly regex: RE2JS };

/** A compiled entry of a route's `matches[]`. All its conditions must be met. */
export interface RequestMatcher {
  readonly path: PathMatcher;
  readonly method?: string;
  readonly headers: readonly { readonly name: string; readonly value: TextMatcher }[];
  readonly query: readonly { readonly name: string; readonly value: TextMatcher }[];
}

/** The part of a route that the router needs. */
export interface Routable {
  /** Final tie-breaker: routes of equal precedence are tried in alphabetical order of their keys. */
  readonly key: string;
  /** In lower case; empty means any host. `*.example.com` matches all its subdomains, but not `example.com`. */
  readonly hostnames: readonly string[];
  readonly matches: readonly RequestMatcher[];
}

/** What expressions of a listener or route read of request bodies. */
export interface BodyUse {
  /** Whether an expression reads the request body. Only then is it buffered. */
  readonly readsBody: boolean;
  /** Whether an expression of a policy or backend reads the body: then its JSON must be unambiguous. */
  readonly decidesByBody: boolean;
  /** Bytes of the body that are buffered. */
  readonly maxBufferSize: number;
}

/** A compiled listener: the routes for some of the hosts of a port. Immutable. */
export interface Listener extends BodyUse {
  /** As in logs and metrics. */
  readonly name: string;
  /** Run before routing, in the order of `policyKinds`. */
  readonly policies: readonly Policy[];
  readonly routes: readonly Route[];
  readonly router: (ctx: RequestContext) => Route | undefined;
}

/** A compiled route. Immutable. */
export interface Route extends Routable, BodyUse {
  /** As printed in the access log, `default/<name>`. */
  readonly name: string;
  /** Its name in the configuration dump, for traces. */
  readonly fullKey: string;
  /** Its location in the configuration, for traces. */
  readonly place: TracePlace;
  /** In the order of `policyKinds`. */
  readonly policies: readonly Policy[];
  /** Those policies that have `around`. */
  readonly aroundPolicies: readonly Policy[];
  /** The API of its clients, if not plain HTTP. */
  readonly api: ClientApi | undefined;
  /** Its requests are not traffic: they are those of operators, who look at the gateway. */
  readonly isForOperators?: true;
  /** Its backends with a weight above 0. */
  readonly backends: readonly WeightedBackend[];
  /** If other routes answer its requests: the choices, by weight. */
  readonly delegates?: readonly Delegate[];
}

/** Routes that answer the requests of a route that delegates to them. */
export interface Delegate {
  readonly weight: number;
  readonly routes: readonly Route[];
  readonly find: (ctx: RequestContext) => Route | undefined;
}
