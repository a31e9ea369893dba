import { z } from 'zod';
import { jsonIn } from '../../../../core/foreign.ts';
import { MEMORY_API_LIMITS as LIMITS, MEMORY_STORE_LIMITS } from '../../../../core/memory-limits.ts';
import { docsPlaces } from '../../docs-folders.ts';
import { defineEndpoint, entityTypes, NOT_A_CURSOR, pageLimit } from '../endpoint.ts';
import { MemoryError } from '../memory-error.ts';

const place = z.strictObject({ name: z.string(), id: z.string() });

/** Name and id of the last entity of the previous page: longer than other cursors, because names may be long. */
const cursor = z
  .string()
  .max(2 * (MEMORY_STORE_LIMITS.nameBytes + MEMORY_STORE_LIMITS.idBytes))
  .transform((text, context) => {
    const found = place.safeParse(jsonIn(text));
    if (found.success) return found.data;
    context.addIssue(NOT_A_CURSOR);
    return z.NEVER;
  })
  .optional();

/** Entities by name, without their content: all, or those that contain a text. */
export const entities = defineEndpoint({
  method: 'GET',
  path: '/entities',
  query: z.strictObject({
    query: z.string().min(1).max(MEMORY_STORE_LIMITS.queryLength).optional(),
    types: entityTypes,
    limit: pageLimit,
    cursor,
  }),
  async run({ query: { cursor: after, ...request }, memory }) {
    const { entities: found, next } = await memory.store.searchEntities({ ...request, after });
    return { body: { entities: found, nextCursor: next === null ? null : JSON.stringify(next) } };
  },
});

/** One entity with its whole content. */
export const entity = defineEndpoint({
  method: 'GET',
  path: '/entities/:id',
  params: z.strictObject({ id: z.string().min(1).max(LIMITS.nameLength) }),
  async run({ params: { id }, memory }) {
    const [found] = await memory.store.entities([id]);
    if (found === undefined) throw new MemoryError('memory_not_found', 'no entity has this id');
    const { title: _title, heading: _heading, searchText: _words, ...shown } = found;
    const located = await docsPlaces(memory.store, memory.docsFolder);
    return { body: { ...shown, metadata: located(shown.metadata) } };
  },
});
