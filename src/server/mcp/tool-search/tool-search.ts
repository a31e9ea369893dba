import { z } from 'zod';
import { namePattern } from '../names/name-pattern.ts';
import { type SearchableTool, ToolIndex } from './tool-index.ts';

/** Most tools of one answer. Each comes with its schema, so more of them cost the context that the search saves. */
const MOST_RESULTS = 20;

/** `mcp.toolSearch`. */
export const toolSearchSchema = z
  .strictObject({
    pinned: z
      .array(z.string().min(1))
      .default([])
      .describe('Tools that stay in the list, by the names that clients see; `*` matches any characters.'),
    results: z
      .int()
      .min(1)
      .max(MOST_RESULTS)
      .default(5)
      .describe('Tools that a search finds unless it asks for another number.'),
  })
  .meta({ isSwitch: true })
  .describe(
    'Replaces the list of tools by `search_tools`, which finds tools by words, and `call_tool`, which calls one of them: for more tools than fit into the context of a model. Rules, guardrails, pins and limits apply as to direct calls, which stay possible.',
  );

/** Indexes that are kept of one backend: callers with the same tools share one. */
const KEPT_INDEXES = 8;

/** The tool search of one MCP backend. */
export class ToolSearch {
  readonly results: number;
  readonly mostResults: number = MOST_RESULTS;
  /** Whether a tool stays in the list; `name` is the client's. */
  readonly isPinned: (name: string) => boolean;
  /** Oldest use first. */
  readonly #indexes = new Map<string, Promise<ToolIndex>>();

  constructor({ pinned, results }: z.output<typeof toolSearchSchema>) {
    this.results = results;
    this.isPinned = namePattern(pinned);
  }

  /** The index of these tools, of which `key` is a hash. */
  indexOf(key: string, tools: readonly SearchableTool[]): Promise<ToolIndex> {
    const index = this.#indexes.get(key) ?? ToolIndex.of(tools);
    this.#indexes.delete(key);
    this.#indexes.set(key, index);
    const [oldest] = this.#indexes.keys();
    if (oldest !== undefined && this.#indexes.size > KEPT_INDEXES) this.#indexes.delete(oldest);
    return index;
  }
}
