import { z } from 'zod';
import { MEMORY_API_LIMITS as LIMITS, MEMORY_STORE_LIMITS } from '../../../../core/memory-limits.ts';
import { searchTurns } from '../../search/turns.ts';
import { defineEndpoint, NOT_A_CURSOR, pageLimit, sessionId, wholeNumber } from '../endpoint.ts';
import { MemoryError } from '../memory-error.ts';
import { shownTurns } from './shown-turns.ts';

const TIME =
  'expected a date such as 2026-01-31, which begins at midnight in UTC, or a time with its zone, such as 2026-01-31T12:00:00Z ' +
  'or 2026-01-31T12:00:00+01:00';

/** Compared as text with the times that the store writes, so an offset is converted. */
export const time = z
  .union([z.iso.datetime({ offset: true }), z.iso.date()], { error: TIME })
  .transform((value) => new Date(value).toISOString())
  .optional();

/** Turns of any session, by session, agent, time and words. */
export const turns = defineEndpoint({
  method: 'GET',
  path: '/turns',
  query: z
    .strictObject({
      sessionId: sessionId.optional(),
      conversationId: sessionId.optional(),
      agentId: z.string().min(1).max(LIMITS.nameLength).optional(),
      from: time,
      to: time,
      query: z.string().min(1).max(MEMORY_STORE_LIMITS.queryLength).optional(),
      order: z.enum(['newest', 'oldest', 'relevance']).default('newest'),
      cursor: wholeNumber(0, Number.MAX_SAFE_INTEGER, -1),
      limit: wholeNumber(1, LIMITS.pageSize, 20),
    })
    .refine(({ sessionId: id, conversationId: alias }) => id === undefined || alias === undefined, {
      path: ['conversationId'],
      message: 'is another name for `sessionId`: use only one of them',
    }),
  async run({ query: { conversationId, cursor, order, ...given }, memory, signal }) {
    const request = { ...given, sessionId: given.sessionId ?? conversationId };
    const isFirst = cursor < 0;
    if (order !== 'relevance' || request.query === undefined) {
      const found = await memory.store.searchTurns({
        ...request,
        order: order === 'relevance' ? 'newest' : order,
        cursor: isFirst ? undefined : cursor,
      });
      if (found.turns.length > 0 || request.query === undefined || !isFirst)
        return { body: { ...found, count: found.turns.length } };
    }
    // No turn has every word, as with most questions: those that fit best.
    const ranked = await searchTurns(memory, { ...request, query: request.query, asOf: request.to }, signal);
    const shown = await shownTurns(memory.store, ranked);
    return { body: { turns: shown, count: shown.length, nextCursor: null, ranked: true } };
  },
});

/** The chat threads, most recent first. */
export const sessions = defineEndpoint({
  method: 'GET',
  path: '/sessions',
  query: z.strictObject({
    limit: pageLimit,
    cursor: z
      .string()
      .regex(/^\d{1,15}$/, NOT_A_CURSOR)
      .optional(),
  }),
  run: async ({ query, memory }) => ({ body: await memory.store.sessions(query) }),
});

/** The turns of one chat thread, oldest first. */
export const sessionTurns = defineEndpoint({
  method: 'GET',
  path: '/sessions/:id/turns',
  params: z.strictObject({ id: sessionId }),
  query: z.strictObject({ after: wholeNumber(0, Number.MAX_SAFE_INTEGER, 0), limit: pageLimit }),
  async run({ params: { id }, query, memory }) {
    const page = await memory.store.turns(id, query);
    if (page === undefined) throw new MemoryError('memory_not_found', 'no session has this id');
    return { body: page };
  },
});
