import type { Readable } from 'node:stream';
import type {
  AuthorizationRule,
  PolicyAction,
  TraceMessage,
  TracePlace,
  TraceSeverity,
} from '../../core/trace/event.ts';
import type { CallKind } from './call-meter.ts';
// biome-ignore lint/suspicious/noImportCycles: see request-context.ts.
import type { CelResult, TracedExpression } from './expression.ts';
// biome-ignore lint/suspicious/noImportCycles: see request-context.ts.
import type { Policy, Reply, RequestContext, Route } from './request-context.ts';

/** What a policy did to a request. */
export interface PolicyNote {
  /** Key of the policy in the configuration. */
  readonly kind: string;
  readonly action: PolicyAction;
  /** Why, in words: the rule that decided, the header that was missing. */
  readonly reason: string;
  /** Values that the decision rests on. Never holds credentials. */
  readonly snapshot?: Readonly<Record<string, unknown>>;
  readonly severity?: TraceSeverity;
  /** When it began, from `RequestObserver.now`, for what took time. */
  readonly since?: number;
}

/** The decision of a rule set, and the rule that decided. */
export interface Decision {
  readonly allowed: boolean;
  readonly reason: string;
  /** None when no rule refused the request, or when no `allow` rule was true. */
  readonly rule?: TracedExpression;
  /** The result of every rule, only while the request is observed. */
  readonly rules?: readonly AuthorizationRule[];
}

export type CelOutcome = { readonly value: CelResult } | { readonly error: string };

export interface EventOptions {
  readonly severity?: TraceSeverity | undefined;
  /** From `RequestObserver.now`. */
  readonly since?: number | undefined;
  /** What the event belongs to, such as `ext_authz`; absent for the request itself. */
  readonly scope?: string | undefined;
}

/** A request as the backend gets it. */
export interface BackendRequest<Body> {
  readonly headers: readonly string[];
  readonly path: string;
  readonly authority: string;
  readonly body: Body;
}

/**
 * Sees what happens to one request, in order. A request has one only while it is observed (a live trace, debug log lines),
 * so that everything else pays one check for `undefined`. Known credentials never leave an observer.
 */
export interface RequestObserver {
  /** Only decisions are wanted: snapshots, bodies and values of expressions need not be built. */
  readonly isBrief: boolean;
  /** Whole µs since the observation began. */
  readonly now: number;
  /** Keeps a secret out of everything that follows. `always`: it belongs to the configuration, not to the client. */
  hide(secret: string | undefined, always?: boolean): void;
  /** The router has decided; `selected` is undefined when no route matched. */
  routed(routes: readonly Route[], selected: Route | undefined): void;
  /** A policy did something, or considered the request and skipped it. */
  policy(note: PolicyNote): void;
  /** Rules were evaluated, about the request or about one item of an MCP server. */
  authorization(
    policy: string,
    decision: Decision,
    item?: { readonly kind: string; readonly target: string; readonly name: string },
  ): void;
  /** A policy has finished with the request. */
  policyDone(policy: Policy): void;
  /** Every policy let the request pass. */
  policiesPassed(route: Route): void;
  /** The response phase of the entered policies; the observer runs it, so that it can show what each one changed. */
  responding(ctx: RequestContext, reply: Reply, entered: readonly Policy[]): void;
  expression(
    expression: TracedExpression,
    since: number,
    peek: (root: string) => unknown,
    outcome: CelOutcome,
  ): void;
  /** The request is about to be sent. Returns the body to send, which reports what was sent of it. */
  sending<B extends null | string | Uint8Array | Readable>(request: BackendRequest<B>): B | Readable;
  /** Reports a call for the request, at its begin and its end. Gives what the call gives. */
  call<T extends { readonly status: number } | { readonly statusCode: number }>(
    target: string,
    sent: Promise<T>,
    scope?: string,
  ): Promise<T>;
  callStarted(target: string, scope?: string): number;
  /** `problem`: the failure that the answer reports, whatever its status. */
  callEnded(target: string, since: number, status: number | null, scope?: string, problem?: string): void;
  callFailed(target: string, since: number, error: unknown, scope?: string): void;
  responseSnapshot(stage: string, reply: Reply): void;
  /** A body as far as it was kept; `truncated` when there was more. */
  body(stage: string, bytes: Uint8Array, truncated?: boolean): void;
  /** Collects the bytes that a provider answers, before they are changed; shown when the response has ended. */
  rawResponse(): { see(chunk: Buffer): void };
  /** The result of a guardrail for a request or a response. */
  guardrail(
    phase: string,
    verdict: 'pass' | 'mask' | 'reject' | 'failed',
    place: TracePlace,
    problem?: string,
  ): void;
  /** Anything that one feature alone knows of. */
  emit(message: TraceMessage, options?: EventOptions): void;
}

export type AttributeValue = string | number | boolean | string[];

/** A span of a call that the gateway makes for a recorded request. */
export interface CallSpan {
  /** The header value that carries its context. */
  readonly traceparent: string;
  setAttribute(name: string, value: AttributeValue): void;
  /** The answer came; `status` is that of HTTP. Later ends and failures are ignored. */
  end(status?: number): void;
  /** The call failed. `type` is the `error.type`, `_OTHER` by default: a class of failures, of which there are few. */
  fail(why: string, type?: string): void;
}

/** A call over HTTP, as spans describe it. */
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

/** A request that is recorded as a span: calls made for it become its children. */
export interface RequestSpan {
  readonly traceId: string;
  readonly spanId: string;
  setAttribute(name: string, value: AttributeValue): void;
  /** Begins the span of a call to `address`; undefined once the request has the maximum number of spans. */
  call(
    name: string,
    attributes: Readonly<Record<string, AttributeValue>>,
    address?: string,
  ): CallSpan | undefined;
  http(call: HttpCall): CallSpan | undefined;
}
