import { membersOf, textIn } from '../../core/foreign.ts';
import { needsRole } from '../../server/admin-access/caller.ts';
import { previewsOf } from '../../server/record/preview.ts';
import { recordById, searchRecords } from '../../server/record/search.ts';
import { usageOf } from '../../server/record/usage.ts';
import { defineEndpoint, shows } from '../endpoint.ts';
import {
  answerFromDatabase,
  cursorText,
  InvalidParameter,
  Refused,
  searchOf,
  usageQueryOf,
} from '../record-query.ts';
import { recordWithoutContents } from '../without-contents.ts';

/**
 * Searches the record of requests, newest first. A page may have fewer than `limit` records although there are more: it
 * is returned after `LIMITS.recordSearchTime`. `next` is then the parameter `after` of the next page; null at the end.
 */
export const records = defineEndpoint({
  path: '/api/records',
  methods: { GET: shows('viewer') },
  handle: (request, reply, admin, call) =>
    answerFromDatabase(reply, admin, async (database) => {
      const search = searchOf(request);
      const readsContents = search.text !== undefined || search.hasContents === true;
      if (readsContents && !call.may('operator'))
        throw new Refused(needsRole('a search with `text` or `contents`', 'operator', call.caller));
      const page = await searchRecords(database, search);
      const ids = search.hasContents ? page.records.map(({ id }) => id) : [];
      const previews = await previewsOf(database, ids);
      const records = page.records.map((record) => {
        const preview = previews.get(record.id);
        if (!call.may('operator')) return recordWithoutContents(record);
        return preview === undefined ? record : { ...record, preview };
      });
      return { records, next: page.next === undefined ? null : cursorText(page.next) };
    }),
});

/** One recorded request with its conversation (`payload`), if that was kept and the caller may see it. */
export const record = defineEndpoint({
  path: '/api/records/:id',
  methods: { GET: shows('viewer') },
  handle: (request, reply, admin, call) =>
    answerFromDatabase(reply, admin, async (database) => {
      const id = textIn(membersOf(request.params)['id']);
      if (!/^\d{1,15}$/.test(id)) throw new InvalidParameter('the id of a record is a number');
      const found = await recordById(database, Number(id));
      return found === undefined || call.may('operator') ? found : recordWithoutContents(found);
    }),
});

/** Requests, tokens and cost by key, user, model, day, …: sums of whole hours. */
export const usage = defineEndpoint({
  path: '/api/usage',
  methods: { GET: shows('viewer') },
  handle: (request, reply, admin) =>
    answerFromDatabase(reply, admin, async (database) => {
      const query = usageQueryOf(request);
      const { rows, total, isCut } = await usageOf(database, query);
      const [from, to] = [query.from, query.to].map((time) => new Date(time).toISOString());
      return { by: query.by, from, to, rows, total, isCut };
    }),
});
