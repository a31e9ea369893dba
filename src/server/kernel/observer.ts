/* oxlint-disable import/no-cycle -- see request-context.ts. */
import type { Readable } from 'node:stream';
import type {
  AuthorizationRule,
  PolicyAction,
  TraceMessage,
  TracePlace,
  TraceSeverity,
} from '../../core/trace/event.ts';
import type { CelResult, TracedExpression } from './expression.ts';
import type { Policy, Reply, RequestContext } from './request/request-context.ts';
import type { Listener, Route, WeightedBackend } from './routing/route.ts';

/** What a policy did to a request. */
export interface PolicyNote {
  /** Key of the policy in the configuration. */
  readonly kind: string;
  readonly action: PolicyAction;
  /** Readable reason, such as the rule that decided or the missing header. */
  readonly reason: string;
  /** Values that the decision is based on. Never contains credentials. */
  readonly snapshot?: Readonly<Record<string, unknown>>;
  readonly severity?: TraceSeverity;
  /** Start of a longer operation, from `RequestObserver.now`. */
  readonly since?: number;
}

/** The decision of a rule set, and the rule that decided. */
export interface Decision {
  readonly allowed: boolean;
  readonly reason: string;
  /** Undefined if no rule denied the request, or if no `allow` rule was true. */
  readonly rule?: TracedExpression;
  /** The result of every rule, only while the request is observed. */
  readonly rules?: readonly AuthorizationRule[];
}

export type CelOutcome = { readonly value: CelResult } | { readonly error: string };

export interface EventOptions {
  readonly severity?: TraceSeverity | undefined;
  /** From `RequestObserver.now`. */
  readonly since?: number | undefined;
  /** The operation that the event belongs to, such as `ext_authz`; undefined for the request itself. */
  readonly scope?: string | undefined;
}

/** A request as it is sent to the backend. */
export interface BackendRequest<Body> {
  readonly headers: readonly string[];
  readonly path: string;
  readonly authority: string;
  readonly body: Body;
}

/**
 * Is notified of the steps of one request, in order. A request has an observer only while it is traced or logged at debug
 * level, so other requests only pay for a check for `undefined`. An observer redacts known credentials.
 */
export interface RequestObserver {
  /** Only decisions are used: callers can omit snapshots, bodies and values of expressions. */
  readonly isBrief: boolean;
  /** Time since the observation started, in whole µs. */
  readonly now: number;
  /** Redacts a secret from all later events. `always`: the secret belongs to the configuration, not to the client. */
  hide(secret: string | undefined, always?: boolean): void;
  /** The listener for the request is known, and its policies are about to run. */
  listenerSelected(listener: Listener): void;
  /** Every policy of the listener let the request pass. */
  listenerPassed(): void;
  /** The router has decided; `selected` is undefined when no route matched. */
  routed(routes: readonly Route[], selected: Route | undefined): void;
  /** A policy did something, or considered the request and skipped it. */
  policy(note: PolicyNote): void;
  /** Rules were evaluated for the request or for one item of an MCP server. */
  authorization(
    policy: string,
    decision: Decision,
    item?: { readonly kind: string; readonly target: string; readonly name: string },
  ): void;
  /** A policy has finished with the request. */
  policyDone(policy: Policy): void;
  /** Every policy of the route let the request pass. */
  policiesPassed(): void;
  /** The backend was picked, and its policies are about to run. */
  backendSelected(route: Route, backend: WeightedBackend): void;
  /** Runs the response phase of the entered policies, so that the observer can show what each one changed. */
  responding(ctx: RequestContext, reply: Reply, entered: readonly Policy[]): Reply;
  expression(
    expression: TracedExpression,
    since: number,
    peek: (root: string) => unknown,
    outcome: CelOutcome,
  ): void;
  /** The request is about to be sent. Returns the body to send, which may be wrapped to record it. */
  sending<B extends null | string | Uint8Array | Readable>(request: BackendRequest<B>): B | Readable;
  /** Reports the start and the end of a call that is made for the request. Settles like `sent`. */
  call<T extends { readonly status: number } | { readonly statusCode: number }>(
    target: string,
    sent: Promise<T>,
    scope?: string,
  ): Promise<T>;
  /** Returns the start time for `callEnded` and `callFailed`. */
  callStarted(target: string, scope?: string): number;
  /** `problem`: an error that the response reports in its body, whatever its status. */
  callEnded(target: string, since: number, status: number | null, scope?: string, problem?: string): void;
  callFailed(target: string, since: number, error: unknown, scope?: string): void;
  responseSnapshot(stage: string, reply: Reply): void;
  /** A recorded body; `truncated` if it is incomplete. */
  body(stage: string, bytes: Uint8Array, truncated?: boolean): void;
  /** Records the unmodified response bytes of a provider, which are shown when the response has ended. */
  rawResponse(): { see(chunk: Buffer): void };
  /** The result of a guardrail for a request or a response. */
  guardrail(
    phase: string,
    verdict: 'pass' | 'mask' | 'reject' | 'failed',
    place: TracePlace,
    problem?: string,
  ): void;
  /** An event that is specific to one feature. */
  emit(message: TraceMessage, options?: EventOptions): void;
}

export type AttributeValue = string | number | boolean | string[];

/** The span of an outgoing call that is made for a recorded request. */
export interface CallSpan {
  /** Its context as a `traceparent` header value. */
  readonly traceparent: string;
  setAttribute(name: string, value: AttributeValue): void;
  /** The call was answered with this HTTP status. Later calls of `end` and `fail` are ignored. */
  end(status?: number): void;
  /** The call failed. `type` is the attribute `error.type`, a low-cardinality class of errors; `_OTHER` by default. */
  fail(why: string, type?: string): void;
}

/** Attributes of an HTTP call for its span. */
export interface HttpCall {
  readonly kind: CallKind;
  readonly subtype: string;
  readonly method: string;
  /** `host:port` or `unix:path`. */
  readonly address: string;
  /** Scheme and authority of the URL. */
  readonly origin: string;
  /** Path and query. */
  readonly path: string;
}

/** The span of a recorded request, with calls made for it as children. */
export interface RequestSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** The router has decided. */
  routed(route: Route | undefined): void;
  setAttribute(name: string, value: AttributeValue): void;
  /** Starts the span of a call to `address`. Undefined once the request has `LIMITS.spansPerRequest` call spans (128). */
  call(
    name: string,
    attributes: Readonly<Record<string, AttributeValue>>,
    address?: string,
  ): CallSpan | undefined;
  /** Like `call`, for an HTTP call. */
  http(call: HttpCall): CallSpan | undefined;
}

/** Kind of an outgoing call: to the backend, made by a policy, a copy of a request, or to the shared store. */
export type CallKind = 'Primary' | 'Policy' | 'Mirror' | 'Shared';

/** Records metrics of the calls to one upstream. Created when the configuration is compiled. */
export interface CallMeter {
  readonly kind: CallKind;
  /** Type of the called service, such as `Http` or `ExtAuthz`. A metric label with a fixed set of values. */
  readonly subtype: string;
  /** A connection was opened; it took `duration` ms. */
  connected(transport: 'plaintext' | 'tls', duration: number): void;
  /** The response headers arrived `duration` ms after the call started. */
  answered(duration: number): void;
  /** A connection was closed because of bytes that no request asked for. */
  unsolicited(): void;
}
