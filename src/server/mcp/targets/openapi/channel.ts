import { shownValue } from '../../../../core/foreign.ts';
import { LIMITS } from '../../../../core/limits.ts';
import type { Log } from '../../../../core/log.ts';
import { FieldNames, isSettableHeader, withoutFields } from '../../../kernel/request/header-list.ts';
import type { Upstream } from '../../../transport/upstream/upstream.ts';
import {
  explainUpstreamError,
  isHeadersTimeout,
  locatedProblem,
} from '../../../transport/upstream/upstream-error.ts';
import type { UpstreamRequest } from '../../../transport/upstream/upstream-request.ts';
import {
  type CallerCredential,
  ChannelCredentials,
  type TargetCredentials,
} from '../../connection/caller-credential.ts';
import { type ClientHeaders, NO_HEADERS } from '../../connection/client-headers.ts';
import type { Channel, ChannelEvents, SendOptions } from '../../connection/target.ts';
import { publicProblem, TargetFailure } from '../../connection/target-failure.ts';
import { numberOfId, parseMessage, type RpcMessage, TARGET_BOUNDS } from '../../protocol/message.ts';
import {
  errorMessage,
  LATEST_SESSION_REVISION,
  RPC,
  RpcError,
  resultMessage,
  SESSION_REVISIONS,
} from '../../protocol/protocol.ts';
import { failedResult, toolResultOf } from './answer.ts';
import type { Operation } from './operations.ts';
import { ArgumentError } from './parameters.ts';
import { requestOf } from './request.ts';

/** An API, as an MCP server in this process offers it. */
export interface Api {
  /** Name of the target. */
  readonly name: string;
  readonly log: Log;
  readonly upstream: Upstream;
  /** What its requests carry instead of credentials of the client. */
  readonly credentials?: TargetCredentials | undefined;
  /** Headers of every request, as alternating names and values: keys of the API. */
  readonly headers: readonly string[];
  readonly serverInfo: { readonly name: string; readonly version: string };
  readonly tools: readonly Operation[];
  /** Reads the operations again if the document has changed. Rejects if it cannot be read. */
  current(): Promise<{ readonly tools: readonly Operation[] }>;
}

/**
 * An MCP server of revision 2025-11-25 in this process, whose tools are the operations of an API. Nothing is shared between
 * calls, so sessions need no state.
 */
export class OpenApiChannel implements Channel {
  readonly sessionId = undefined;
  readonly #api: Api;
  readonly #events: ChannelEvents;
  readonly #credentials: ChannelCredentials;
  readonly #inFlight = new Map<number, AbortController>();
  #tools: readonly Operation[];
  #isClosed = false;

  constructor(api: Api, events: ChannelEvents) {
    this.#api = api;
    this.#tools = api.tools;
    this.#events = events;
    this.#credentials = new ChannelCredentials(api.credentials);
  }

  send(text: string, { id, headers = NO_HEADERS, headTimeout }: SendOptions): void {
    // Notifications need no reaction: a cancelled call is also aborted by `abandon`.
    if (id === undefined) return;
    const message = parseMessage(text, TARGET_BOUNDS);
    // Later, because the caller learns the id only when this method returns.
    if (message.method === 'tools/list' && message.params['cursor'] === undefined)
      void this.#refresh().then(() => this.#answer(id, () => this.#resultOf(message)));
    else if (message.method !== 'tools/call')
      queueMicrotask(() => this.#answer(id, () => this.#resultOf(message)));
    else void this.#call(message, id, headers, headTimeout);
  }

  agreed(): void {}
  listen(): void {}
  pause(): void {}

  abandon(id: number): void {
    this.#inFlight.get(id)?.abort();
  }

  close(): Promise<void> {
    this.#isClosed = true;
    for (const call of this.#inFlight.values()) call.abort();
    return Promise.resolve();
  }

  /** A session may last long, and clients of revision 2026-07-28 have none that they could open again. */
  async #refresh(): Promise<void> {
    try {
      this.#tools = (await this.#api.current()).tools;
    } catch {
      // The source has logged the problem; the operations stay as they were.
    }
  }

  #answer(id: number, result: () => string): void {
    if (this.#isClosed) return;
    let text: string;
    try {
      text = resultMessage(String(id), result());
    } catch (error) {
      if (!(error instanceof RpcError)) {
        this.#events.failed(id, error instanceof Error ? error : new Error('internal error'));
        return;
      }
      text = errorMessage(String(id), error.code, error.message);
    }
    this.#events.message(text, id);
  }

  /** The result of a request other than `tools/call`, as JSON text. Throws `RpcError`. */
  #resultOf({ method, params }: RpcMessage): string {
    switch (method) {
      case 'initialize':
        return this.#initializeResult(params['protocolVersion']);
      case 'ping':
        return '{}';
      case 'tools/list':
        return toolsPage(this.#tools, params['cursor']);
      default:
        throw new RpcError(RPC.methodNotFound, `method not found: ${method}`);
    }
  }

  #initializeResult(requested: unknown): string {
    const protocolVersion = SESSION_REVISIONS.find((known) => known === requested) ?? LATEST_SESSION_REVISION;
    return JSON.stringify({
      protocolVersion,
      capabilities: { tools: {} },
      serverInfo: this.#api.serverInfo,
    });
  }

  async #call(
    { text, params }: RpcMessage,
    id: number,
    headers: ClientHeaders,
    timeout: number | undefined,
  ): Promise<void> {
    const { upstream, log, name } = this.#api;
    const credential = this.#credentials.of(headers);
    const abort = new AbortController();
    this.#inFlight.set(id, abort);
    try {
      const operation = this.#tools.find(({ name }) => name === params['name']);
      const { signal } = abort;
      const result =
        operation === undefined
          ? undefined
          : await this.#run(
              operation,
              text,
              headers.list,
              timeout === undefined ? { signal } : { signal, timeout },
              credential,
            );
      this.#answer(id, () => {
        if (result !== undefined) return credential?.clean(result) ?? result;
        throw new RpcError(RPC.invalidParams, `Unknown tool: ${shownValue(params['name'])}`);
      });
    } catch (error) {
      if (abort.signal.aborted) return;
      // "Tool Execution Errors ... API failures" (MCP 2025-11-25, "Error Handling"): the model can read why.
      log.warn('mcp::openapi', 'a call to the API of a target failed', {
        target: name,
        problem: error instanceof TargetFailure ? error.detail : locatedProblem(upstream.address, error),
      });
      const problem =
        timeout !== undefined && isHeadersTimeout(error)
          ? `the API did not answer within ${timeout / 1000} s`
          : error instanceof TargetFailure
            ? publicProblem(name, error)
            : `the call to the API failed: ${explainUpstreamError(error)}`;
      this.#answer(id, () => failedResult(problem));
    } finally {
      this.#inFlight.delete(id);
    }
  }

  /** Calls the API. Resolves to a tool result as JSON text, also for arguments that cannot be sent. */
  async #run(
    operation: Operation,
    message: string,
    forwarded: readonly string[],
    limits: Pick<UpstreamRequest, 'signal' | 'timeout'>,
    credential: CallerCredential | undefined,
  ): Promise<string> {
    const { upstream } = this.#api;
    try {
      const { headers, ...request } = requestOf(operation, message);
      const sent = {
        ...request,
        headers: this.#headers(forwarded, headers),
        ...limits,
        bodyIdle: LIMITS.backendIdle,
      };
      const response = await upstream.request(
        credential === undefined ? sent : await credential.complete(sent, upstream),
      );
      return await toolResultOf(response);
    } catch (error) {
      if (error instanceof ArgumentError) return failedResult(error.message);
      throw error;
    }
  }

  /** Configured headers and those of the arguments, which have other names, replace those of the client's request. */
  #headers(forwarded: readonly string[], own: readonly string[]): string[] {
    const { headers } = this.#api;
    const names = (list: readonly string[]): string[] => list.filter((_, index) => index % 2 === 0);
    const configured = new FieldNames(names(headers));
    return [
      ...withoutFields(forwarded, new FieldNames([...configured, ...names(own)])),
      ...own,
      ...headers,
      ...(configured.has('accept') ? [] : ['accept', 'application/json, text/*;q=0.5, */*;q=0.1']),
    ];
  }
}

/** One page of `tools/list` as JSON text. A cursor is the index of the first tool. */
function toolsPage(tools: readonly Operation[], cursor: unknown): string {
  const from = cursor === undefined ? 0 : numberOfId(cursor);
  if (from === undefined || from >= tools.length) throw new RpcError(RPC.invalidParams, 'invalid cursor');
  const to = from + LIMITS.openApiPageTools;
  const page = tools.slice(from, to).map(({ tool }) => tool);
  return `{"tools":[${page.join(',')}]${to < tools.length ? `,"nextCursor":"${to}"` : ''}}`;
}

/** Whether the configuration may set this header for requests to an API. */
export const isApiHeader = (name: string): boolean =>
  isSettableHeader(name) && name.toLowerCase() !== 'content-type';
