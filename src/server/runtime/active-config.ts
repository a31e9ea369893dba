import { Slot } from '../kernel/slot.ts';
import type { BindMetrics } from '../observe/metrics/metrics.ts';
import type { Tracing } from '../observe/otlp/tracing.ts';
import type { GatewayRuntime, Runtime } from './runtime.ts';

/** The configuration that one port uses for new requests. A reload replaces it; in-flight requests keep theirs. */
export interface ActiveConfig {
  readonly runtime: Runtime;
  /** With tracing, its router also decides for each request whether a span is recorded. */
  readonly gateway: GatewayRuntime;
  readonly tracing: Tracing | undefined;
  readonly bind: BindMetrics | undefined;
}

/** The configuration that handles a request from start to end. A reload does not change it. */
export const activeConfig = new Slot<ActiveConfig>();
