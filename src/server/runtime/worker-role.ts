import { findListener } from '../kernel/pipeline.ts';
import type { Reply, RequestContext } from '../kernel/request/request-context.ts';
import type { Route } from '../kernel/routing/route.ts';
import { Slot } from '../kernel/slot.ts';
import type { Acceptor } from '../transport/listener/injected-connections.ts';
import type { GatewayRuntime } from './runtime.ts';

/** Whether another worker answers the request, and logs, measures and traces it. */
export const isForwarded = new Slot<boolean>();

/** What a gateway does not do itself when it runs as one of several workers. */
export interface WorkerRole {
  /** Number of this worker, from 1 to `count`. */
  readonly index: number;
  readonly count: number;
  /** Where the connections of a port come from; `key` as in `portKey`. */
  acceptor(key: string): Acceptor;
  /** Lets another worker answer a request. Rejects with an `AppError` if that worker is not running. */
  forward(ctx: RequestContext, worker: number): Promise<Reply>;
}

/** Returns the worker that has to answer a request; undefined for this one. */
export type Placement = (ctx: RequestContext) => number | undefined;

/** How the requests of a gateway are divided among the workers. Undefined if any worker can answer all of them. */
export function placementOf(gateway: GatewayRuntime, { index, count }: WorkerRole): Placement | undefined {
  const routes = gateway.listeners.flatMap((listener) => listener.routes);
  const isPlaced = routes.some(({ backends }) => backends.some(({ backend }) => backend.workerFor));
  if (!isPlaced) return undefined;
  return (ctx) => {
    // A request is forwarded once: workers that do not agree must not send it back and forth.
    if (ctx.client.local !== ctx.client.connection) return undefined;
    for (const { backend } of routeOf(ctx, gateway)?.backends ?? []) {
      const worker = backend.workerFor?.(ctx, count);
      if (worker !== undefined) return worker === index ? undefined : worker;
    }
    return undefined;
  };
}

/**
 * Looked up before the request is observed and its span begins: the worker that answers a request does both. What
 * policies of the listener change has no influence on the choice of the worker.
 */
function routeOf(ctx: RequestContext, gateway: GatewayRuntime): Route | undefined {
  try {
    return findListener(ctx, gateway)?.router(ctx);
  } catch {
    // Answered here, as any invalid request.
    return undefined;
  }
}
