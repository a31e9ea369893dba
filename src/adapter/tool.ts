import type { z } from 'zod';
import type { Backend } from './backend/backend.ts';

/** What a tool call knows in addition to its arguments. */
export interface ToolContext {
  readonly backend: Backend;
  /** The caller, from the gateway's `X-Agent-Id`, or `unknown`. */
  readonly agentId: string;
  readonly signal: AbortSignal;
}

/** What a search compares: with a model, meanings too. `unknown` for a backend elsewhere. */
export type SearchKind = 'words' | 'meaning' | 'unknown';

interface ToolParts<Input extends z.ZodObject, Output extends z.ZodObject> {
  readonly name: string;
  readonly title: string;
  /** For models; of a search, as far as it depends on the embedder. */
  readonly description: string | ((kind: SearchKind) => string);
  readonly input: Input;
  /** Schema of the backend's response; further members are passed on. */
  readonly output: Output;
  readonly readOnly: boolean;
  readonly idempotent: boolean;
  /** Whether a call can delete what is stored. Default: false. */
  readonly destructive?: boolean;
  /** Returns the backend's response. Throws `BackendError`. */
  run(args: z.output<Input>, context: ToolContext): Promise<unknown>;
  /** Shortens a valid response to what a model can use. */
  shorten?(reply: z.output<Output>, args: z.output<Input>): z.output<Output>;
  /** What structured content has of it, if the text has the rest. Default: all. */
  structured?(reply: z.output<Output>, args: z.output<Input>): z.output<Output>;
  /** The text for clients that show no structured content. Default: the structured content as JSON. */
  text?(reply: z.output<Output>, args: z.output<Input>): string;
}

/** A tool of the adapter, with an entry in the list of `tools/index.ts`. */
export interface Tool
  extends Omit<ToolParts<z.ZodObject, z.ZodObject>, 'run' | 'shorten' | 'structured' | 'text'> {
  run(args: never, context: ToolContext): Promise<unknown>;
  shorten?(reply: never, args: never): Record<string, unknown>;
  structured?(reply: never, args: never): Record<string, unknown>;
  text?(reply: never, args: never): string;
}

export function defineTool<Input extends z.ZodObject, Output extends z.ZodObject>(
  tool: ToolParts<Input, Output>,
): Tool {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the list of tools has no type for the arguments of each
  return tool as unknown as Tool;
}
