import { z } from 'zod';
import { MEMORY_API_LIMITS, MEMORY_STORE_LIMITS } from '../../core/memory-limits.ts';
import { nonEmpty } from '../../core/schema/mapping.ts';
import { defineTool } from '../tool.ts';
import { foundTurn, shortenedTurn } from './found-turn.ts';
import { withinTokens } from './token-budget.ts';

const result = z.looseObject({
  id: z.string(),
  name: z.string(),
  type: z.string(),
  content: z.string().describe('The text that was found.'),
  score: z.number().describe('Similarity, 0 to 1; compared with minScore.'),
  truncated: z.boolean().optional().describe('Whether the content is shortened.'),
  metadata: z
    .looseObject({})
    .optional()
    .describe('Origin of the text: source, path, title, heading with its anchor, line.'),
});

export const searchKnowledge = defineTool({
  name: 'search_knowledge',
  title: 'Search knowledge',
  description:
    'Searches all indexed documents by meaning and by words and returns the passages that fit best, with a similarity score ' +
    'and their source. When nothing reaches minScore, the reply says how many were below it and the best score. With turns, ' +
    'it also returns what was said in earlier conversations, best first, with date and speaker.',
  input: z.strictObject({
    query: nonEmpty.max(MEMORY_STORE_LIMITS.queryLength).describe('What to look for, in natural language.'),
    limit: z.int().min(1).max(MEMORY_STORE_LIMITS.results).default(5).describe('Maximum number of results.'),
    minScore: z
      .number()
      .min(0)
      .max(1)
      .default(0.7)
      .describe('Minimum similarity (0 to 1); lower-scoring results are left out.'),
    maxTokens: z
      .int()
      .min(50)
      .max(100_000)
      .optional()
      .describe('Most tokens of all returned texts together, roughly; the last passage is shortened.'),
    turns: z
      .boolean()
      .optional()
      .describe('Whether to search conversations too; their turns are ranked, without minScore.'),
    asOf: z
      .string()
      .max(40)
      .optional()
      .describe('Only what was said before this time, such as 2026-01-31T12:00:00Z.'),
  }),
  output: z.looseObject({
    results: z.array(result),
    turns: z
      .array(foundTurn)
      .optional()
      .describe('Turns of conversations, best first; of facts that changed, the latest first.'),
    count: z.int(),
    filtered: z.int().optional().describe('How many candidates were below minScore.'),
    bestScore: z.number().nullish().describe('The best score of all candidates, also of those left out.'),
    hint: z.string().optional(),
  }),
  readOnly: true,
  idempotent: true,
  run: ({ maxTokens: _, ...args }, { backend, signal }) =>
    backend.call({
      method: 'POST',
      path: '/search',
      body: args,
      timeout: MEMORY_API_LIMITS.callTimeout,
      signal,
    }),
  shorten(reply, { maxTokens }) {
    const results = reply.results.map((found) =>
      found.content.length <= MEMORY_STORE_LIMITS.resultLength
        ? found
        : { ...found, content: found.content.slice(0, MEMORY_STORE_LIMITS.resultLength), truncated: true },
    );
    const turns = reply.turns?.map(shortenedTurn);
    if (maxTokens === undefined) return { ...reply, ...(turns && { turns }), results };
    // Of both, half of it for turns.
    const share = turns === undefined || turns.length === 0 ? maxTokens : Math.floor(maxTokens / 2);
    const kept = withinTokens(results, share);
    const left = results.length - kept.length;
    return {
      ...reply,
      ...(turns && { turns: withinTokens(turns, share) }),
      results: kept,
      count: kept.length,
      ...(left > 0 && { hint: `${left} more passages do not fit into maxTokens.` }),
    };
  },
});
