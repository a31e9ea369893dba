import { Slot } from '../kernel/slot.ts';
import type { BindMetrics } from '../observe/metrics/metrics.ts';
import type { Tracing } from '../observe/otlp/tracing.ts';
import type { GatewayRuntime, Runtime } from './runtime.ts';

/** What one port serves with. A reload puts another one in its place; requests under way keep theirs. */
export interface ActiveConfig {
  readonly runtime: Runtime;
  /** Its router decides, where spans are recorded, about each request, too. */
  readonly gateway: GatewayRuntime;
  readonly tracing: Tracing | undefined;
  readonly bind: BindMetrics | undefined;
}

/** The configuration that serves a request, from its beginning to its end: a reload does not change that. */
export const activeConfig = new Slot<ActiveConfig>();
