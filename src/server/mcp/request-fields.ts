import { Slot } from '../kernel/slot.ts';
import type { RpcMessage } from './protocol/message.ts';

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
  /** Estimated tokens of the result that were not shown (`maxResultTokens`). */
  cutTokens?: number;
  /** Arguments, result and error of a tool call, set only if an expression of the log reads them. */
  toolArguments?: unknown;
  toolResult?: unknown;
  toolError?: unknown;
}

export const mcpFields = new Slot<McpFields>();

/** Decides whether this caller may use an item of an MCP target. Names are those of the target. */
export interface ItemAccess {
  /** Whether the name of a tool matters. */
  readonly decidesByName: boolean;
  /**
   * `args`: the arguments of a tool call; undefined for other methods. Throws `RpcError` for arguments that the target may
   * read in another way than the rules.
   */
  allows(kind: string, target: string, name: string, args?: unknown): boolean;
  /** Whether lists for this caller have a tool. Traces do not show it. */
  lists(target: string, tool: string): boolean;
  /** Whether there may be an item of that target that the caller may use, whatever the target lists. */
  mayUse(target: string): boolean;
}

/** Set by `mcpAuthorization`: which items of MCP targets this caller may list and use. */
export const itemAccess = new Slot<ItemAccess>();

/** How the tools of a bundle are shown. */
export interface ShownBundle {
  readonly instructions: string | undefined;
  /** The description of a tool, with its name at the target; undefined if it stays as it is. */
  description(target: string, own: string): string | undefined;
}

/** Set if the request is for one of the backend's `bundles`. */
export const shownBundle = new Slot<ShownBundle>();

/** A request, or a response of the client, as guardrails leave it. */
export interface GuardedRequest {
  readonly message: RpcMessage;
  /** Changes the headers for an HTTP target; undefined if they stay as they are. */
  readonly headers: ((headers: readonly string[]) => readonly string[]) | undefined;
}

/** Checks of `mcpGuardrails` on messages of one request. They return undefined if nothing checks the message. */
export interface MessageGuards {
  /**
   * Checks a request that is about to be sent to a target, with the target's names. Returns it, possibly with other
   * parameters. Rejects with `RpcError` if it must not be sent.
   */
  request(message: RpcMessage, target: string, signal: AbortSignal): Promise<GuardedRequest> | undefined;
  /**
   * Checks a response of the client to that request of a target, like an argument of a tool. Returns the response for the
   * target, which may be an error. Never rejects.
   */
  answer(response: RpcMessage, method: string, target: string): Promise<GuardedRequest> | undefined;
  /** Whether something checks requests of that method. */
  checksRequest(method: string): boolean;
  /** Whether something checks the responses to requests of that method. */
  checksResponse(method: string): boolean;
  /**
   * Checks the response of these targets to that request; a list as the client sees it. Returns another response, which may
   * be an error, or undefined if the target's may pass. Never rejects.
   */
  response(
    text: string,
    request: RpcMessage,
    targets: readonly string[],
    signal: AbortSignal,
  ): Promise<RpcMessage | undefined> | undefined;
}

export const messageGuards = new Slot<MessageGuards>();
