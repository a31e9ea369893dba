import type { RuntimeSettings } from '../kernel/compile-context.ts';
import { Slot } from '../kernel/slot.ts';
import type { ChildSlots } from './child-slots.ts';
import type { ResultPool } from './result-limits/kept-results.ts';

/** State that all MCP backends of the process share, across reloads. */
export interface McpProcess {
  /** Key for session ids (32 bytes). */
  readonly sessionKey: Buffer;
  /** Whether other processes may have the key, so that they can continue sessions of this one. */
  readonly isKeyConfigured: boolean;
  /** Milliseconds without a request after which a session ends. */
  readonly sessionIdle: number;
  /** Maximum number of sessions per backend. */
  readonly maxSessions: number;
  /** Limits child processes of all stdio targets. */
  readonly children: ChildSlots;
  /** Bounds what all sessions keep of results. */
  readonly results: ResultPool;
  /** Number of this worker, from 1, if there are several. */
  readonly worker: number | undefined;
  /** The share of this worker in a number of things that all workers have together. */
  share(total: number): number;
}

const processes = new Slot<McpProcess>();

/** Sets the shared state before backends are compiled. */
export function setMcpProcess(settings: RuntimeSettings, shared: McpProcess): void {
  processes.set(settings, shared);
}

/** Returns the shared state. Throws `Error` if `setMcpProcess` was not called, which is a bug. */
export function mcpProcessOf(settings: RuntimeSettings): McpProcess {
  const shared = processes.get(settings);
  if (shared === undefined) throw new Error('the runtime has no MCP settings');
  return shared;
}
