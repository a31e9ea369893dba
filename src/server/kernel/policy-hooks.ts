import type { TracePlace } from '../../core/trace/event.ts';
import { Slot } from './slot.ts';

// What policies in code do with the calls of backends. Backends run them; they know nothing of the policies.

/** A call of a model. Functions change its members. */
export interface ModelCall {
  readonly format: string | undefined;
  model: string | undefined;
  readonly request: Record<string, unknown>;
}

/** A request to an MCP server for one item, with the names of the target. Functions change its arguments. */
export interface ItemCall {
  readonly method: 'tools/call' | 'prompts/get' | 'resources/read';
  readonly target: string;
  readonly name: string;
  arguments: Record<string, unknown>;
}

/** The answer to an `ItemCall`. Functions change `result` or `error`, of which one is set. */
export interface ItemAnswer extends Readonly<ItemCall> {
  result: Record<string, unknown> | undefined;
  error: Record<string, unknown> | undefined;
}

/** The functions of one policy. They throw an `AppError` to refuse the call. */
export interface PolicyHooks {
  readonly name: string;
  readonly place: TracePlace;
  llmCall?(call: ModelCall): void | Promise<void>;
  mcpCall?(call: ItemCall): void | Promise<void>;
  mcpResult?(answer: ItemAnswer): void | Promise<void>;
}

/** In the order in which they run. */
export const policyHooks = new Slot<readonly PolicyHooks[]>();
