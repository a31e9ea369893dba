import { usageOf } from '../../server/record/usage.ts';
import { defineEndpoint } from '../endpoint.ts';
import { answerFromDatabase, usageQueryOf } from '../record-query.ts';

/** Requests, tokens and cost by key, user, model, day, …: sums of whole hours. */
export const usage = defineEndpoint({
  path: '/api/usage',
  methods: ['GET'],
  handle: (request, reply, admin) =>
    answerFromDatabase(reply, admin, async (database) => {
      const query = usageQueryOf(request);
      const { rows, total, isCut } = await usageOf(database, query);
      const [from, to] = [query.from, query.to].map((time) => new Date(time).toISOString());
      return { by: query.by, from, to, rows, total, isCut };
    }),
});
