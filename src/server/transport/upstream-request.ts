import type { Dispatcher, Pool } from 'undici';
import type { HeaderList } from '../kernel/header-list.ts';
import type { CallMeter, RequestSpan } from '../kernel/observer.ts';
import type { Reachability } from './reachability.ts';
import type { UpstreamBody } from './upstream-body.ts';

/** A call to an upstream. */
export interface UpstreamRequest {
  readonly method: string;
  /** Path and query. Appended to the fixed origin, so it cannot change the host. */
  readonly path: string;
  readonly headers: readonly string[];
  readonly body?: Dispatcher.DispatchOptions['body'];
  /** Aborts a `request`. */
  readonly signal?: AbortSignal;
  /** The client's request: a `relay` is aborted when the client disconnects. Much cheaper than a signal per request. */
  readonly client?: RelayClient;
  /** For `request`: the span of the request that it is made for. */
  readonly span?: RequestSpan | undefined;
  /** Maximum time until the response headers, including the connection, in ms. Only for `relay`; no limit by default. */
  readonly timeout?: number;
  /** Maximum silence within the response body in ms; no limit by default. Waiting for a slow client does not count. */
  readonly bodyIdle?: number;
  /** The request has no side effects, whatever its method: it may be sent twice. */
  readonly isReplaySafe?: boolean;
}

/** The part of a request that a relay needs. */
export interface RelayClient {
  readonly isAbandoned: boolean;
  /** Why it is abandoned, unless the client disconnected. */
  readonly abandonReason: string | undefined;
  running: { abandoned(): void } | undefined;
  /** From `performance.now()`: when the backend was called, and when its response headers arrived. */
  readonly timings: { called: number | undefined; answered: number | undefined };
  /** Set if the request is recorded: the call then gets a child span and sends its context. */
  readonly span: RequestSpan | undefined;
}

export interface UpstreamResponse {
  readonly status: number;
  /** Response headers without hop-by-hop fields. */
  readonly headers: HeaderList;
  readonly body: UpstreamBody;
}

/** State that all calls to one upstream share. */
export interface Destination {
  readonly pool: Pool;
  readonly address: string;
  readonly meter: CallMeter | undefined;
  readonly reachability: Reachability | undefined;
}
