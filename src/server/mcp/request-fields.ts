import { Slot } from '../kernel/slot.ts';

/** Fields of one MCP message for the access log, metrics and expressions, set as they become known. */
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
  /** Details of the error for the log only, without secrets. */
  errorDetail?: string;
  /** Whether the result of the tool has `isError`. */
  isToolError?: boolean;
  /** Arguments, result and error of a tool call, set only if an expression of the log reads them. */
  toolArguments?: unknown;
  toolResult?: unknown;
  toolError?: unknown;
}

export const mcpFields = new Slot<McpFields>();

/** Decides whether this caller may use an item of an MCP target. Names are those of the target. */
export interface ItemAccess {
  /** `args`: the arguments of a tool call; undefined for other methods. */
  allows(kind: string, target: string, name: string, args?: unknown): boolean;
}

/** Set by `mcpAuthorization`: which items of MCP targets this caller may list and use. */
export const itemAccess = new Slot<ItemAccess>();
