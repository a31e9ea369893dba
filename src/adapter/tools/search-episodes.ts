import { z } from 'zod';
import { MEMORY_API_LIMITS as LIMITS, MEMORY_STORE_LIMITS } from '../../core/memory-limits.ts';
import { nonEmpty } from '../../core/schema/mapping.ts';
import { defineTool } from '../tool.ts';

const time = z.string().max(40).optional();

export const searchEpisodes = defineTool({
  name: 'search_episodes',
  title: 'Search earlier conversations',
  description:
    'Finds stored conversation turns by words, conversation, agent and time, newest first. To replay a conversation, give ' +
    'its sessionId and order "oldest".',
  input: z.strictObject({
    query: nonEmpty
      .max(MEMORY_STORE_LIMITS.queryLength)
      .optional()
      .describe('Words that a turn must contain, all of them, in any form.'),
    sessionId: nonEmpty.max(LIMITS.nameLength).optional().describe('Id of the chat thread.'),
    agentId: nonEmpty.max(LIMITS.nameLength).optional().describe('Agent that stored the turn.'),
    from: time.describe('Not before this time, such as 2026-01-31T12:00:00Z.'),
    to: time.describe('Before this time.'),
    order: z.enum(['newest', 'oldest']).default('newest').describe('Which turns come first.'),
    limit: z.int().min(1).max(LIMITS.toolTurns).default(20).describe('Maximum number of turns.'),
    cursor: z.int().min(0).optional().describe('The nextCursor of the previous result.'),
  }),
  output: z.looseObject({
    turns: z.array(
      z.looseObject({
        seq: z.int(),
        sessionId: z.string(),
        agentId: z.string(),
        role: z.string(),
        content: z.string(),
        createdAt: z.string(),
        truncated: z.boolean().optional().describe('Whether the content is shortened.'),
      }),
    ),
    count: z.int(),
    nextCursor: z.int().nullable().describe('For the turns that follow; null if there are none.'),
  }),
  readOnly: true,
  idempotent: true,
  run: (args, { backend, signal }) =>
    backend.call({
      method: 'GET',
      path: '/turns',
      query: Object.fromEntries(
        Object.entries(args).flatMap(([key, value]) => (value === undefined ? [] : [[key, String(value)]])),
      ),
      timeout: LIMITS.callTimeout,
      signal,
    }),
  shorten: (reply) => ({
    ...reply,
    turns: reply.turns.map((turn) =>
      turn.content.length <= MEMORY_STORE_LIMITS.resultLength
        ? turn
        : {
            ...turn,
            content: turn.content.slice(0, MEMORY_STORE_LIMITS.resultLength).toWellFormed(),
            truncated: true,
          },
    ),
  }),
});
