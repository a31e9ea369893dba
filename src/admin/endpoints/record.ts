import { membersOf, textIn } from '../../core/foreign.ts';
import { recordById } from '../../server/record/search.ts';
import { defineEndpoint } from '../endpoint.ts';
import { answerFromDatabase, InvalidParameter } from '../record-query.ts';

/** One recorded request with its conversation (`payload`), if that was kept. */
export const record = defineEndpoint({
  path: '/api/records/:id',
  methods: ['GET'],
  handle: (request, reply, admin) =>
    answerFromDatabase(reply, admin, (database) => {
      const id = textIn(membersOf(request.params)['id']);
      if (!/^\d{1,15}$/.test(id)) throw new InvalidParameter('the id of a record is a number');
      return recordById(database, Number(id));
    }),
});
