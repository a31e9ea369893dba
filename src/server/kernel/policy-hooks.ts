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
  /** Empty for the result of a task, which is asked for by the id of the task. */
  readonly name: string;
  arguments: Record<string, unknown>;
}

/** The answer to an `ItemCall`. Functions change `result` or `error`, of which one is set. */
export interface ItemAnswer extends Readonly<ItemCall> {
  result: Record<string, unknown> | undefined;
  error: Record<string, unknown> | undefined;
}

/** Takes what a function has left. It throws for what it cannot take, which then is a failure of the policy. */
export type Check = () => void | Promise<void>;

/** The functions of one policy. They throw an `AppError` to refuse the call. */
export interface PolicyHooks {
  readonly name: string;
  readonly place: TracePlace;
  llmCall?(call: ModelCall, check: Check): Promise<void>;
  mcpCall?(call: ItemCall, check: Check): Promise<void>;
  mcpResult?(answer: ItemAnswer, check: Check): Promise<void>;
}

/** In the order in which they run. */
export const policyHooks = new Slot<readonly PolicyHooks[]>();
