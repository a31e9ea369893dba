import { z } from 'zod';
import { MEMORY_API_LIMITS as LIMITS, MEMORY_STORE_LIMITS } from '../../core/memory-limits.ts';
import { nonEmpty } from '../../core/schema/mapping.ts';
import { defineTool } from '../tool.ts';
import { foundTurn, shortenedTurn, shownTurn } from './found-turn.ts';
import { passagesIn, structuredPassages, textOfPassages } from './passages-in.ts';

const time = z.string().max(40).optional();

export const searchEpisodes = defineTool({
  name: 'search_episodes',
  title: 'Search earlier conversations',
  description:
    'Finds stored conversation turns by conversation, agent and time, and by words: those that have all of them, newest first, or, ' +
    'as for a question, those that fit it best, the latest of changed facts first. To replay a conversation, give its ' +
    'sessionId and order "oldest".',
  input: z.strictObject({
    query: nonEmpty
      .max(MEMORY_STORE_LIMITS.queryLength)
      .optional()
      .describe('A question, or words that a turn must contain, all of them, in any form.'),
    sessionId: nonEmpty.max(LIMITS.nameLength).optional().describe('Id of the chat thread.'),
    agentId: nonEmpty.max(LIMITS.nameLength).optional().describe('Agent that stored the turn.'),
    from: time.describe(
      'Not before this time: 2026-01-31T12:00:00Z, or 2026-01-31 for its beginning in UTC.',
    ),
    to: time.describe('Before this time, likewise.'),
    order: z
      .enum(['newest', 'oldest', 'relevance'])
      .default('newest')
      .describe(
        'Which turns come first; relevance: those that fit the query best, whether or not they have all words.',
      ),
    limit: z.int().min(1).max(LIMITS.toolTurns).default(20).describe('Maximum number of turns.'),
    cursor: z.int().min(0).optional().describe('The nextCursor of the previous result.'),
    passagesIn,
  }),
  output: z.looseObject({
    turns: z.array(foundTurn),
    ranked: z.boolean().optional().describe('Whether no turn has all words, so that the best are returned.'),
    count: z.int(),
    hint: z.string().optional().describe('What to do if no turn was found.'),
    nextCursor: z.int().nullable().describe('For the turns that follow; null if there are none.'),
  }),
  readOnly: true,
  idempotent: true,
  run: ({ passagesIn: _, ...args }, { backend, signal }) =>
    backend.call({
      method: 'GET',
      path: '/turns',
      query: Object.fromEntries(
        Object.entries(args).flatMap(([key, value]) => (value === undefined ? [] : [[key, String(value)]])),
      ),
      timeout: LIMITS.callTimeout,
      signal,
    }),
  shorten(reply, args) {
    const hint = reply.turns.length === 0 ? hintFor(args) : undefined;
    return {
      ...reply,
      turns: reply.turns.map((turn) => shortenedTurn(turn, args.query ?? '')),
      ...(hint !== undefined && { hint }),
    };
  },
  structured: (reply, { query = '', passagesIn: where }) => ({
    ...reply,
    turns: structuredPassages(reply.turns, query, where),
  }),
  text({ turns, ranked, nextCursor, hint }, { query = '', passagesIn: where }) {
    const said = turns.map(shownTurn);
    const more = nextCursor === null ? '' : `\n\nMore follow: repeat the call with cursor: ${nextCursor}.`;
    const best = ranked === true && turns.length > 0 ? 'No turn has all words; these fit best. ' : '';
    return `${best}${textOfPassages('turn', said, query, where)}${more}${hint === undefined ? '' : `\n\n${hint}`}`;
  },
});

/** What to do if no turn was found. */
function hintFor({
  query,
  cursor,
  ...args
}: { readonly [Name in 'query' | (typeof FILTERS)[number]]?: string | undefined } & {
  readonly cursor?: number | undefined;
}): string | undefined {
  if (cursor !== undefined) return undefined;
  const filters = FILTERS.filter((name) => args[name] !== undefined);
  const fewer = filters.length === 0 ? [] : [`leave out ${filters.join(', ')}`];
  const other = query === undefined ? [] : ['use other words', 'search documents with search_knowledge'];
  const ways = [...fewer, ...other];
  return ways.length === 0
    ? 'no turn is stored in this memory yet: store_episodic stores turns'
    : `no turn fits: ${ways.join(', or ')}`;
}

const FILTERS = ['sessionId', 'agentId', 'from', 'to'] as const;
