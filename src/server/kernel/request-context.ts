import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AppError, Reason } from '../../core/errors.ts';
import { HeadersView } from '../expressions/cel/headers-view.ts';
import type { LlmCall } from '../llm/log-fields.ts';
import type { RequestSpan } from '../observe/otlp/span.ts';
import type { Tracer } from '../observe/trace/tracer.ts';
import type { Serving } from '../runtime/active-config.ts';
import type { HeaderList } from './header-list.ts';
import type { Policy } from './policy.ts';
import { RequestBody } from './request-body.ts';

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

/** May this caller use an item of an MCP target? Names are the target's own. */
export interface ItemAccess {
  /** `args`: what a tool is called with; undefined where nothing is called. */
  allows(kind: string, target: string, name: string, args?: unknown): boolean;
}

/** The Host that a service gets, of the one that the client asked for and the service's own. */
export type HostRewrite = (
  asked: string,
  own: { readonly authority: string; readonly isTls: boolean },
) => string;

/** Access-log values that a backend knows of one MCP message. */
export interface McpLogFields {
  method?: string;
  target?: string;
  resourceType?: 'tool' | 'prompt' | 'resource' | 'templates' | 'task';
  resourceUri?: string;
  tool?: string;
  prompt?: string;
  task?: string;
  sessionId?: string;
  errorCode?: number;
  errorMessage?: string;
  /** More of it, for the log only; without secrets. */
  errorDetail?: string;
  /** The result of the tool says that the call failed. */
  isToolError?: boolean;
  /** Of a call of a tool, kept only where an expression of the log reads them. */
  toolArguments?: unknown;
  toolResult?: unknown;
  toolError?: unknown;
}

/** One request and what is known of it so far. Created by the listener, passed down the pipeline, logged at the end. */
export class Exchange {
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
  readonly startedAt = Date.now();
  readonly startedClock = performance.now();

  /** Canonical path without query, query with `?`, lower-case authority: set by `admitRequest`. */
  path = '';
  query = '';
  host = '';
  /** Request headers for everyone after admission: policies edit these, the backend receives these. */
  readonly headers: HeaderList;
  readonly body: RequestBody;

  /** In the log, where lines of the request are to be told from others. */
  number: number | undefined;
  route: string | undefined;
  /** The backend that was chosen, by its name in the configuration dump, as metrics label it. */
  backend: string | undefined;
  /** Address of the upstream that was called, `host:port`. */
  endpoint: string | undefined;
  protocol: 'http' | 'mcp' | 'llm' = 'http';
  mcp: McpLogFields | undefined;
  llm: LlmCall | undefined;
  /** The model that was asked for, when there is no such model for this caller; for the log, shortened. */
  refusedModel: string | undefined;
  /** Who the caller is, when a policy established it: sessions are bound to it. */
  principal: string | undefined;
  /** Set by `mcpAuthorization`: which items of MCP targets this caller may see and use. */
  itemAccess: ItemAccess | undefined;
  /** Set by `mcpAuthentication`: the challenge for a rule on scopes (its source) that did not hold. */
  scopeChallenge: ((ruleSource: string) => string) | undefined;
  /** Claims of the validated token, metadata of the key, values of external authorization: set by their policies. */
  jwt: Readonly<Record<string, unknown>> | undefined;
  apiKey: Readonly<Record<string, unknown>> | undefined;
  /** Patterns of LLM models that the caller's key may use; all when undefined. */
  allowedModels: readonly string[] | undefined;
  extauthz: Readonly<Record<string, unknown>> | undefined;
  /** Set by `timeout`: how long one call to a backend may take until its response headers, in ms. */
  backendTimeout: number | undefined;
  /** Set by `timeout`: how long the response body of a backend may be silent, in ms; 0 for no limit. */
  backendIdle: number | undefined;
  /** Set by `urlRewrite`: the Host for a plain HTTP service. */
  rewriteHost: HostRewrite | undefined;
  /** What serves it, from its beginning to its end: a reload does not change that. */
  serving: Serving | undefined;
  /** Somebody watches this request; otherwise stages need not even build their events. */
  trace: Tracer | undefined;

  /** Policies that it has come by, in their order. */
  readonly entered: Policy[] = [];
  /** The request was answered with this, because its time was over: whatever it still waits for is for nobody. */
  cut: AppError | undefined;
  /** Why the request was given up, when it is not that the client left. */
  givenUpFor: string | undefined;
  /** What was answered, from the moment it is known. */
  reply: Reply | undefined;
  /** The request is recorded for a collector of traces. */
  span: RequestSpan | undefined;
  /** Of `performance.now()`: the backend was called, its response began, ours was ready. */
  calledAt: number | undefined;
  answeredAt: number | undefined;
  repliedAt: number | undefined;
  /** The response body, as far as an access-log expression needs it. */
  responseBody: (() => Uint8Array | string) | undefined;
  endedAt: number | undefined;
  /** Told the tokens of an LLM call, input and output together, when it has ended. */
  readonly onUsage: ((tokens: number) => void)[] = [];

  /** What the client was told, and why, which only the log is told. */
  /** Query parameters that hold credentials: logs leave them out. */
  secretParameters: ReadonlySet<string> | undefined;

  /** What runs for the request elsewhere and should end when the client leaves. */
  runs:
    | {
        abandoned(): void;
        /** The request is about to be cut: answers with an error while that is possible. Whether it did. */
        expired?(): boolean;
      }
    | undefined;

  error: string | undefined;
  errorDetail: string | undefined;
  reason: Reason | undefined;

  readonly #variables = new Map<string, unknown>();
  #headersView: HeadersView | undefined;
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
  variable(root: string, create: (x: Exchange) => unknown): unknown {
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

  /** Request headers for expressions. The view reads the list as it is now. */
  get headersView(): HeadersView {
    this.#headersView ??= new HeadersView(this.headers.raw);
    return this.#headersView;
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
    this.givenUpFor = why;
    this.#gone?.abort();
    this.runs?.abandoned();
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
