import { previewsOf } from '../../server/record/preview.ts';
import { searchRecords } from '../../server/record/search.ts';
import { defineEndpoint } from '../endpoint.ts';
import { answerFromDatabase, cursorText, searchOf } from '../record-query.ts';

/**
 * Searches the record of requests, newest first. A page may have fewer than `limit` records although there are more: it
 * is returned after `LIMITS.recordSearchTime`. `next` is then the parameter `after` of the next page; null at the end.
 */
export const records = defineEndpoint({
  path: '/api/records',
  methods: ['GET'],
  handle: (request, reply, admin) =>
    answerFromDatabase(reply, admin, async (database) => {
      const search = searchOf(request);
      const page = await searchRecords(database, search);
      const ids = search.hasContents ? page.records.map(({ id }) => id) : [];
      const previews = await previewsOf(database, ids);
      const records = page.records.map((record) => {
        const preview = previews.get(record.id);
        return preview === undefined ? record : { ...record, preview };
      });
      return { records, next: page.next === undefined ? null : cursorText(page.next) };
    }),
});
