import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AppError, Reason } from '../../core/errors.ts';
import type { TracePlace } from '../../core/trace/event.ts';
import type { HeaderList } from './header-list.ts';
// biome-ignore lint/suspicious/noImportCycles: a request has an observer, which is shown the request. The only circle, of three files.
import type { RequestObserver, RequestSpan } from './observer.ts';
import { RequestBody } from './request-body.ts';
import type { Routable } from './routable.ts';
import type { SlotHolder } from './slot.ts';

/** What a backend or a policy answers. The listener writes it; nothing else touches the socket. */
export interface Reply {
  status: number;
  readonly headers: HeaderList;
  readonly body: ReplyBody;
}

export type ReplyBody = undefined | string | Uint8Array | StreamingBody;

/** A body that writes itself, in its own time. Exactly one of `attach` and `discard` is called. */
export interface StreamingBody {
  /** The head is written. */
  attach(response: ServerResponse): void;
  /** The client has left before there was a response. */
  discard(): void;
  /** The response is about to be cut: ends with an error while that is possible. Whether it did. */
  expired?(): boolean;
}

/** A call that runs for a request elsewhere, and should end when the client leaves. */
export interface RunningWork {
  abandoned(): void;
  /** The request is about to be cut: answers with an error while that is possible. Whether it did. */
  expired?(): boolean;
}

/** Moments of a request, of `performance.now()`. */
export class Timings {
  readonly started = performance.now();
  /** The backend was called. */
  called: number | undefined;
  /** The head of the backend's response arrived. */
  answered: number | undefined;
  /** The reply was ready. */
  replied: number | undefined;
}

/** How traces name a policy, in upstream's words. */
export interface PolicyTraceNames {
  /** In events. */
  readonly kind: string;
  /** The stage of a snapshot after the policy. */
  readonly stage: string;
  /** The stage of a snapshot after its response phase. `response headers` by default. */
  readonly responseStage?: string;
  /** Among the policies in force. The key by default. */
  readonly listedAs?: string;
  /** It acts when the backend is called: listed then, and not when the route is chosen. */
  readonly isBackendPolicy?: boolean;
}

/**
 * A policy at run time. `request` returns nothing to carry on or a reply to stop; it throws an `AppError` to
 * refuse. `response` runs for every request that entered, whatever happened after, and must not throw.
 */
export interface Policy {
  readonly key: string;
  readonly trace?: PolicyTraceNames;
  /** Where it is in the configuration, and its settings without secrets: for traces. */
  readonly origin?: { readonly place: TracePlace; readonly shown: unknown };
  /** Exact paths that the policy answers itself: the route takes them too, whatever it matches otherwise. */
  readonly paths?: readonly string[];
  /** Host names under which the policy's configuration says that the route is reached. */
  readonly hostnames?: readonly string[];
  /** A file that the policy reads again itself, absolute: `changed` is called when it was written. */
  readonly rereads?: { readonly file: string; changed(): void };
  request?(ctx: RequestContext): undefined | Reply | Promise<undefined | Reply>;
  response?(ctx: RequestContext, reply: Reply): void;
  /** Wraps everything after admission: for what bounds or repeats the rest. */
  around?(ctx: RequestContext, next: () => Promise<Reply>): Promise<Reply>;
  close?(): void | Promise<void>;
}

/** What answers a request that the policies let through. */
export interface Backend {
  handle(ctx: RequestContext): Promise<Reply>;
  /** A stop was asked for: responses that wait for nothing in particular should end. */
  drain?(): void;
  /** It comes in place of an older backend. True: it looks after that one from now on, and closes it. */
  takeOver?(previous: unknown): boolean;
  /** Another one looks after it, and the last request that was routed to it has ended. */
  retired?(): void;
  /** Ends what it holds open (children, connections); called once, after its last request. */
  close(): Promise<void>;
}

/** An API that clients of a route speak, where errors and paths follow its conventions and not those of plain HTTP. */
export interface ClientApi {
  /** The label of logs and metrics. */
  readonly protocol: RequestContext['protocol'];
  /** Ids in paths may have encoded slashes. */
  readonly hasEncodedSlashes: boolean;
  /** The body of an error response. */
  errorBody(error: AppError): { readonly type: string; readonly text: string };
  /** Whether the request may use tokens of a model. Limits on tokens let others pass. */
  usesTokens(ctx: RequestContext): boolean;
}

/** A backend with its share of the requests. */
export interface WeightedBackend {
  readonly weight: number;
  readonly backend: Backend;
  /** As the configuration dump refers to it, for metrics. */
  readonly name: string;
}

/** A route as requests see it: compiled once per configuration, never changed. */
export interface Route extends Routable {
  /** As printed in the access log, `default/<name>`. */
  readonly name: string;
  /** As the configuration dump names it: for traces. */
  readonly fullKey: string;
  /** Where it stands in the configuration, for traces. */
  readonly place: TracePlace;
  /** In the order of `policies/index.ts`. */
  readonly policies: readonly Policy[];
  /** Those of them that wrap the rest. */
  readonly wrappers: readonly Policy[];
  /** Whether an expression reads the request body, which is only then kept in memory. */
  readonly readsBody: boolean;
  /** Whether a policy or backend decides by the body, and not the log alone: then JSON must be unambiguous. */
  readonly decidesByBody: boolean;
  readonly maxBufferSize: number;
  /** The API that its clients speak, when it is not plain HTTP. */
  readonly api: ClientApi | undefined;
  /** Backends with their weights; empty weights are left out. */
  readonly backends: readonly WeightedBackend[];
}

/** One request and what is known of it so far. Created by the listener, passed down the pipeline, logged at the end. */
export class RequestContext implements SlotHolder {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Gateway and listener names, as the access log prints them. */
  readonly gateway: string;
  readonly listener: string;
  /** The peer of the connection. Forwarding headers never change it: anybody can send those. */
  readonly sourceAddress: string;
  readonly sourcePort: number;
  /** The connection. Node takes it from a request that has ended with a body that was read as a stream. */
  readonly connection: object;
  /** When it arrived, in ms since 1970. */
  readonly startedAt = Date.now();
  readonly timings = new Timings();

  /** Canonical path without query, query with `?`, lower-case authority: set by `admitRequest`. */
  path = '';
  query = '';
  host = '';
  /** Request headers for everyone after admission: policies edit these, the backend receives these. */
  readonly headers: HeaderList;
  readonly body: RequestBody;

  route: string | undefined;
  /** The backend that was chosen, by its name in the configuration dump, as metrics label it. */
  backend: string | undefined;
  /** Address of the upstream that was called, `host:port`. */
  endpoint: string | undefined;
  protocol: 'http' | 'mcp' | 'llm' = 'http';
  /** The API that the client speaks, when it is not plain HTTP. */
  api: ClientApi | undefined;
  /** What expressions of the access log, metrics and spans read: features record payloads only for these. */
  logReads: { reads(...paths: readonly string[]): boolean } | undefined;
  /** Set while the request is observed; otherwise stages need not even build their events. */
  observer: RequestObserver | undefined;
  /** Set when the request is recorded for a collector of traces. */
  span: RequestSpan | undefined;

  /** Policies whose request phase has begun, in their order. */
  readonly entered: Policy[] = [];
  /** The request was answered with this because its time was over: the result of the pipeline is dropped. */
  cut: AppError | undefined;
  /** Why the request was abandoned, when it is not that the client left. */
  abandonReason: string | undefined;
  /** The reply, from the moment it is known. */
  reply: Reply | undefined;
  /** When the response had ended, in ms since 1970. */
  endedAt: number | undefined;
  /** Ended when the client leaves. */
  running: RunningWork | undefined;

  /** What the client was told. */
  error: string | undefined;
  /** Why, for the log only. */
  errorDetail: string | undefined;
  reason: Reason | undefined;

  /** Values that features keep with the request. */
  slots: unknown[] | undefined;

  readonly #variables = new Map<string, unknown>();
  #gone: AbortController | undefined;
  #isAbandoned = false;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    gateway: string,
    listener: string,
    headers: HeaderList,
  ) {
    this.request = request;
    this.response = response;
    this.gateway = gateway;
    this.listener = listener;
    this.headers = headers;
    // Node answers the expectation itself unless somebody listens for it; here it is answered when the body is read.
    const waits = request.headers.expect?.toLowerCase() === '100-continue';
    this.body = new RequestBody(request, waits ? () => response.writeContinue() : undefined);
    // Read now: a socket that has closed knows its peer no more.
    this.sourceAddress = canonicalAddress(request.socket.remoteAddress ?? '');
    this.sourcePort = request.socket.remotePort ?? 0;
    this.connection = request.socket;
  }

  get method(): string {
    return this.request.method ?? 'GET';
  }

  /** The value of a root variable of expressions, built by `create` when first read. */
  variable(root: string, create: (ctx: RequestContext) => unknown): unknown {
    if (this.#variables.has(root)) return this.#variables.get(root);
    const value = create(this);
    this.#variables.set(root, value);
    return value;
  }

  /** Forgets all root variables: they are built anew when read again. */
  forgetVariables(): void {
    this.#variables.clear();
  }

  /** Forgets a root variable after a policy changed what it is made of. */
  changed(root: string): void {
    this.#variables.delete(root);
  }

  /** The response body did not reach its end. */
  bodyBroken(why: string, isTimeout: boolean): void {
    // We broke it off ourselves.
    if (this.#isAbandoned) return;
    this.reason = isTimeout ? 'Timeout' : 'UpstreamFailure';
    this.error = `upstream call failed: ${why}`;
    this.errorDetail = `${this.endpoint}: ${why}`;
  }

  /** Whether the client has left or the request was given up. */
  get isAbandoned(): boolean {
    return this.#isAbandoned;
  }

  /** The client has left, or the request is given up for the reason `why`: what runs for it elsewhere is ended. */
  abandon(why?: string): void {
    if (this.#isAbandoned) return;
    this.#isAbandoned = true;
    this.abandonReason = why;
    this.#gone?.abort();
    this.running?.abandoned();
  }

  /**
   * The connection closed before the response had ended. Unless the request had failed by then, this is how it ended:
   * what is given up because of it must not look like a failure of its own.
   */
  clientClosed(): void {
    const hasFailed = this.error !== undefined;
    this.abandon();
    if (hasFailed) return;
    this.reason = 'ClientClosed';
    this.error = undefined;
    this.errorDetail = undefined;
  }

  /** Aborted when the client leaves before its response has ended. */
  get signal(): AbortSignal {
    this.#gone ??= new AbortController();
    if (this.#isAbandoned) this.#gone.abort();
    return this.#gone.signal;
  }
}

/** An IPv4 client of a dual-stack socket shows as `::ffff:a.b.c.d`; rules and logs want `a.b.c.d`. */
function canonicalAddress(address: string): string {
  return address.startsWith('::ffff:') ? address.slice(7) : address;
}
