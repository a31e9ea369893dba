import type { z } from 'zod';
import type { Backend } from './backend/backend.ts';

/** What a call of a tool knows beside its arguments. */
export interface ToolContext {
  readonly backend: Backend;
  /** Who calls: what the gateway says in `X-Agent-Id`, or `unknown`. */
  readonly agentId: string;
  readonly signal: AbortSignal;
}

interface ToolParts<Input extends z.ZodObject, Output extends z.ZodObject> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: Input;
  /** What the backend must answer; members beyond it are passed on. */
  readonly output: Output;
  readonly readOnly: boolean;
  readonly idempotent: boolean;
  /** Returns what the backend answered. Throws `BackendFailure`. */
  run(args: z.output<Input>, context: ToolContext): Promise<unknown>;
  /** Shortens a valid answer to what a model can use. */
  shorten?(reply: z.output<Output>): z.output<Output>;
}

/** A tool of the adapter: one file in `tools/` and one entry in its list. */
export interface Tool extends Omit<ToolParts<z.ZodObject, z.ZodObject>, 'run' | 'shorten'> {
  run(args: never, context: ToolContext): Promise<unknown>;
  shorten?(reply: never): Record<string, unknown>;
}

export function defineTool<Input extends z.ZodObject, Output extends z.ZodObject>(
  tool: ToolParts<Input, Output>,
): Tool {
  return tool as unknown as Tool;
}
