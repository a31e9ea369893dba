import type { RuntimeSettings } from '../kernel/compile-context.ts';
import { Slot } from '../kernel/slot.ts';
import type { ChildSlots } from './targets/child-slots.ts';

/** What all MCP backends of the process share, over reloads. */
export interface McpProcess {
  /** Key for session ids: 32 bytes. */
  readonly sessionKey: Buffer;
  /** Milliseconds without a request after which a session ends. */
  readonly sessionIdle: number;
  readonly maxSessions: number;
  /** Slots for child processes, over all stdio targets. */
  readonly children: ChildSlots;
}

const processes = new Slot<McpProcess>();

export function setMcpProcess(settings: RuntimeSettings, shared: McpProcess): void {
  processes.set(settings, shared);
}

/** Throws when the runtime was compiled without one, which is a bug. */
export function mcpProcessOf(settings: RuntimeSettings): McpProcess {
  const shared = processes.get(settings);
  if (shared === undefined) throw new Error('the runtime has no MCP settings');
  return shared;
}
