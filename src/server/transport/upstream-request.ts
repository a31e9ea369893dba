import type { Dispatcher, Pool } from 'undici';
import type { CallMeter } from '../kernel/call-meter.ts';
import type { HeaderList } from '../kernel/header-list.ts';
import type { RequestSpan } from '../kernel/observer.ts';
import type { Reachability } from './reachability.ts';
import type { UpstreamBody } from './upstream-body.ts';

/** A call to an upstream. */
export interface UpstreamRequest {
  readonly method: string;
  /** Path and query; goes after the fixed origin, so it cannot change the host. */
  readonly path: string;
  readonly headers: readonly string[];
  readonly body?: Dispatcher.DispatchOptions['body'];
  /** Ends a `request` when aborted. */
  readonly signal?: AbortSignal;
  /** Whose request it is: a `relay` ends when the client leaves. Cheaper by far than a signal for each request. */
  readonly client?: RelayClient;
  /** Of a `request`: the recorded request that it is made for. */
  readonly span?: RequestSpan | undefined;
  /** Time until the response headers, the connection included, in ms. Of `relay` only. */
  readonly timeout?: number;
  /** How long the response body may be silent, in ms; no limit when absent. Waiting for a slow client is not counted. */
  readonly bodyIdle?: number;
  /** The service only looks something up, whatever the method says: the request may be sent twice. */
  readonly isReplaySafe?: boolean;
}

/** The part of a request that a relay needs. */
export interface RelayClient {
  readonly isAbandoned: boolean;
  /** Why it is abandoned, when it is not that the client left. */
  readonly abandonReason: string | undefined;
  running: { abandoned(): void } | undefined;
  /** Of `performance.now()`: when the backend was called, and when the head of its response came. */
  readonly timings: { called: number | undefined; answered: number | undefined };
  /** Set when the request is recorded: the call becomes a span of its own, and carries its context. */
  readonly span: RequestSpan | undefined;
}

export interface UpstreamResponse {
  readonly status: number;
  /** Without hop-by-hop fields. */
  readonly headers: HeaderList;
  readonly body: UpstreamBody;
}

/** What all calls of one upstream share. */
export interface Destination {
  readonly pool: Pool;
  readonly address: string;
  readonly meter: CallMeter | undefined;
  readonly reachability: Reachability | undefined;
}
