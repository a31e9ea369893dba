import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import type { RE2JS } from 're2js';
import type { BodyWriter } from '../../../core/body-writer.ts';
import type { AppError, Reason } from '../../../core/errors.ts';
import type { TracePlace } from '../../../core/trace/event.ts';
import type { Admitter } from '../admission.ts';
import type { ReloadedFile } from '../files/reloaded-file.ts';
// oxlint-disable-next-line import/no-cycle -- a request has an observer, which is shown the request. The only circle, of four files.
import type { RequestObserver, RequestSpan } from '../observer.ts';
import type { SlotHolder } from '../slot.ts';
import type { ClientConnection } from './client-connection.ts';
import type { HeaderList } from './header-list.ts';
import { takeOwnCookies } from './own-cookies.ts';
import type { Identification, PolicyTraceNames } from './policy-description.ts';
import { RequestBody } from './request-body.ts';
import { Timings } from './timings.ts';
import type { Takeover } from './upgrade.ts';

/** The response of a backend or policy. Only the listener writes it to the socket. */
export interface Reply {
  status: number;
  readonly headers: HeaderList;
  body: ReplyBody;
}

export type ReplyBody = undefined | string | Uint8Array | StreamingBody | Takeover;

/** A body that writes itself to the response. Exactly one of `attach` and `discard` is called. */
export interface StreamingBody {
  /** Its length in bytes if it is complete, so that it can be sent with `Content-Length` instead of in chunks. */
  readonly size?: number | undefined;
  /** Called after the response headers have been written. */
  attach(response: BodyWriter): void;
  /** Called if the client disconnected before the response started. */
  discard(): void;
  /** Called before the response is aborted: ends it with an error if possible, and returns whether it did. */
  expired?(): boolean;
}

/** A call that is made for a request and should end when the client disconnects. */
export interface RunningWork {
  abandoned(): void;
  /** Called before the request is aborted: answers with an error if possible, and returns whether it did. */
  expired?(): boolean;
}

/**
 * A compiled policy. `request` returns undefined to continue or a reply to answer, and throws an `AppError` to reject.
 * `response` runs for every request that entered the policy, whatever happened later, and must not throw.
 */
export interface Policy {
  readonly key: string;
  readonly trace?: PolicyTraceNames;
  /** Its location in the configuration and its settings without secrets, for traces. */
  readonly origin?: { readonly place: TracePlace; readonly shown: unknown };
  /** Exact paths that the policy answers itself. They are added to the matches of the route. */
  readonly paths?: readonly string[];
  /** Paths below which it answers everything itself, added likewise. */
  readonly pathsBelow?: readonly string[];
  /** Host names of the route according to the policy's configuration. */
  readonly hostnames?: readonly string[];
  /** Files that the policy reloads itself. */
  readonly reloads?: readonly ReloadedFile[];
  /** If it finds out who calls: what is known of callers before they call. */
  readonly identifies?: Identification;
  request?(ctx: RequestContext): undefined | Reply | Promise<undefined | Reply>;
  response?(ctx: RequestContext, reply: Reply): void;
  /** Called instead of `response` for a call of a backend that is repeated. */
  repeated?(ctx: RequestContext): void;
  /** Runs around the rest of the flow, including all other policies, for example to limit its time. */
  around?(ctx: RequestContext, next: () => Promise<Reply>): Promise<Reply>;
  /** What takes time before its first request, such as loading code. Called once; problems are reported as while it is compiled. */
  prepare?(): Promise<void>;
  /** Called whenever a configuration with the policy takes effect, also if it was in use before: what it has fetched may be outdated. */
  served?(): void;
  /** Of a policy whose credentials can be taken back. */
  readonly admitter?: Admitter;
  /** Called on reload with the policy that replaces it at its place, if one does. */
  replacedBy?(successor: unknown): void;
  /** Releases what it holds open. Called once, after its last request. */
  close?(): void | Promise<void>;
}

/** Answers the requests that pass the policies. */
export interface Backend {
  handle(ctx: RequestContext): Promise<Reply>;
  /**
   * The worker, from 1 to `workers`, that has the state that the request needs, such as its session. Undefined: any
   * worker can answer it. Called before the policies of the route.
   */
  workerFor?(ctx: RequestContext, workers: number): number | undefined;
  /** Called whenever a configuration with the backend takes effect, also if it was in use before. */
  served?(): void;
  /** Called at shutdown, or when a reload removes the backend: idle streams should end. */
  drain?(): void;
  /** Called on reload with the backend being replaced. Return true to take ownership of it, including its `close`. */
  takeOver?(previous: unknown): boolean;
  /** Called if another backend has taken ownership of this one, once the last request routed to it has ended. */
  retired?(): void;
  /** Closes connections and child processes. Called once, after its last request. */
  close(): Promise<void>;
}

/** An API of the clients of a route, whose conventions for errors and paths differ from plain HTTP. */
export interface ClientApi {
  /** The protocol in logs and metrics. */
  readonly protocol: RequestContext['protocol'];
  /** Whether ids in paths may contain encoded slashes. */
  readonly hasEncodedSlashes: boolean;
  /** Headers in which its official clients send a key, in lower case, besides `Authorization: Bearer`. */
  readonly keyHeaders?: readonly string[];
  /** The body of an error response. It also replaces a body of the error itself. */
  errorBody(error: AppError, ctx: RequestContext): { readonly type: string; readonly text: string };
  /** Whether the request may consume model tokens. Token limits do not apply to other requests. */
  usesTokens(ctx: RequestContext): boolean;
}

/** The condition of a route on the path. */
export type PathMatcher =
  | { readonly kind: 'exact' | 'prefix'; readonly value: string }
  | { readonly kind: 'regex'; readonly value: RE2JS; readonly source: string };

/** A request as it was received: over HTTP/1.1 (`http.IncomingMessage`), HTTP/2, or from the program itself. Its body is `RequestContext.body`. */
export interface ClientRequest {
  readonly method?: string | undefined;
  /** The request target. */
  readonly url?: string | undefined;
  /** By lower-case name, with `host` also over HTTP/2. */
  readonly headers: IncomingHttpHeaders;
  readonly headersDistinct: NodeJS.Dict<string[]>;
  readonly httpVersion: string;
  readonly httpVersionMajor: number;
  /** Whether it was sent as HTTP/2 frames: the version in a request line of HTTP/1.1 is up to the client. */
  readonly isHttp2?: true;
}

/** The response to a request. */
export interface ClientResponse extends BodyWriter {
  /** Writes a reply, if nothing has been written yet. Its body must not be a `Takeover`. */
  send(reply: Reply): void;
  writeContinue(): void;
}

/** State of one request. Created by the listener, passed through the pipeline, and logged at the end. */
export class RequestContext implements SlotHolder {
  readonly request: ClientRequest;
  readonly response: ClientResponse;
  /** Name of the listener: that of the gateway until the Host of the request is known. */
  listener: string;
  /** Behind trusted proxies, what they say of it. */
  client: ClientConnection;
  readonly timings = new Timings();

  /** Canonical path without query, query with `?` or empty, canonical authority. Set by `validateRequest`. */
  path = '';
  query = '';
  host = '';
  /** Path and query that the client requested, if a policy has changed them: logs show these. */
  requestedTarget: string | undefined;
  /** The authority that the client requested, if a policy has changed it. */
  requestedHost: string | undefined;
  /** The path condition of the route that the request met. Set by the router. */
  matchedPath: PathMatcher | undefined;
  /** Request headers. Request validation removes some, policies change them, and the backend receives them. */
  readonly headers: HeaderList;
  readonly body: RequestBody;

  /** Name of the selected route. */
  route: string | undefined;
  /** Name of the selected backend in the configuration dump, for metrics. */
  backend: string | undefined;
  /** Address of the called upstream, `host:port` or `unix:path`. */
  endpoint: string | undefined;
  protocol: 'http' | 'mcp' | 'llm' = 'http';
  /** The API of the client, if not plain HTTP. */
  api: ClientApi | undefined;
  /** Set while the request is observed. */
  observer: RequestObserver | undefined;
  /** Set if the request is recorded for the OpenTelemetry collector. */
  span: RequestSpan | undefined;

  /** Policies whose request phase has started, in order. */
  readonly entered: Policy[] = [];
  /** The error that the request was already answered with when it was aborted. The pipeline's reply is then discarded. */
  abortedWith: AppError | undefined;
  /** Why the request was abandoned, unless the client disconnected. */
  abandonReason: string | undefined;
  /** The reply, once it is known. */
  reply: Reply | undefined;
  /** Work that is ended when the client disconnects. */
  running: RunningWork | undefined;

  /** The error message that the client received. */
  error: string | undefined;
  /** Details of the error, for the log only. */
  errorDetail: string | undefined;
  reason: Reason | undefined;
  /** An error of the gateway's own code that ended the request, for the log. */
  internalError: unknown;

  /** Values of `Slot`s. */
  slots: unknown[] | undefined;

  #variables: Map<string, unknown> | undefined;
  #abortController: AbortController | undefined;
  #isAbandoned = false;
  #method: string | undefined;

  /** `body` is the stream of its body, undefined if it has none. */
  constructor(
    request: ClientRequest,
    response: ClientResponse,
    listener: string,
    headers: HeaderList,
    body: Readable | undefined,
    client: ClientConnection,
  ) {
    this.request = request;
    this.response = response;
    this.listener = listener;
    this.headers = headers;
    if (request.headers.cookie !== undefined) takeOwnCookies(this, headers);
    // The listener handles `checkContinue`, so Node does not send `100 Continue` itself: it is sent once the body is read.
    const expectsContinue = request.headers.expect?.toLowerCase() === '100-continue';
    this.body = new RequestBody(
      request.headers,
      body,
      expectsContinue ? () => response.writeContinue() : undefined,
    );
    this.client = client;
  }

  get method(): string {
    return this.#method ?? this.requestedMethod;
  }

  /** Changes the method for the backend and for everything that follows. */
  set method(method: string) {
    this.#method = method;
  }

  /** The method that the client sent, for logs. */
  get requestedMethod(): string {
    return this.request.method ?? 'GET';
  }

  /** Changes path and query (with `?`, or empty) for the backend and for everything that follows. Both must be canonical. */
  rewriteTarget(path: string, query: string): void {
    this.requestedTarget ??= this.path + this.query;
    this.path = path;
    this.query = query;
  }

  /** Changes the authority for the backend and for everything that follows. It must be canonical. */
  rewriteHost(authority: string): void {
    this.requestedHost ??= this.host;
    this.host = authority;
    if (this.headers.has('host')) this.headers.set('host', authority);
  }

  /** The value of a root variable of expressions, created when first read and then cached. */
  variable(root: string, create: (ctx: RequestContext) => unknown): unknown {
    this.#variables ??= new Map();
    if (this.#variables.has(root)) return this.#variables.get(root);
    const value = create(this);
    this.#variables.set(root, value);
    return value;
  }

  /** Clears the cache of root variables. */
  clearVariables(): void {
    this.#variables = undefined;
  }

  /** Removes a root variable from the cache after a policy has changed the values that it is created from. */
  invalidateVariable(root: string): void {
    this.#variables?.delete(root);
  }

  /** Called if the response body ends early. Sets the reason and error for the log. */
  bodyFailed(why: string, isTimeout: boolean): void {
    // The gateway itself has aborted it.
    if (this.#isAbandoned) return;
    this.reason = isTimeout ? 'Timeout' : 'UpstreamFailure';
    this.error = `upstream call failed: ${why}`;
    this.errorDetail = `${this.endpoint}: ${why}`;
  }

  /** Another backend is called, so that what is said of the failure of the one before does not concern the response. */
  forgetFailure(): void {
    this.reason = undefined;
    this.error = undefined;
    this.errorDetail = undefined;
  }

  /** Whether the client has disconnected or the request was aborted. */
  get isAbandoned(): boolean {
    return this.#isAbandoned;
  }

  /** Ends running work after the client has disconnected, or because the request is aborted for the reason `why`. */
  abandon(why?: string): void {
    if (this.#isAbandoned) return;
    this.#isAbandoned = true;
    this.abandonReason = why;
    this.#abortController?.abort();
    this.running?.abandoned();
  }

  /** The connection closed before the response ended: unless the request had failed, errors of ended work are not failures. */
  clientClosed(): void {
    const hasFailed = this.error !== undefined;
    this.abandon();
    if (hasFailed) return;
    this.reason = 'ClientClosed';
    this.error = undefined;
    this.errorDetail = undefined;
  }

  /** Aborted if the client disconnects before its response has ended, or if the request is aborted. */
  get signal(): AbortSignal {
    this.#abortController ??= new AbortController();
    if (this.#isAbandoned) this.#abortController.abort();
    return this.#abortController.signal;
  }
}
