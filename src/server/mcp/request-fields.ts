import { Slot } from '../kernel/slot.ts';

/** Values of one MCP message, for the access log, metrics and expressions. Filled in as they become known. */
export interface McpFields {
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
  /** Of a tool call, kept only where an expression of the log reads them. */
  toolArguments?: unknown;
  toolResult?: unknown;
  toolError?: unknown;
}

export const mcpFields = new Slot<McpFields>();

/** Decides whether this caller may use an item of an MCP target. Names are the target's own. */
export interface ItemAccess {
  /** `args`: the arguments of the tool call; undefined where nothing is called. */
  allows(kind: string, target: string, name: string, args?: unknown): boolean;
}

/** Set by `mcpAuthorization`: which items of MCP targets this caller may list and use. */
export const itemAccess = new Slot<ItemAccess>();
