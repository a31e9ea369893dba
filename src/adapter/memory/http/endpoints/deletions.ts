import { z } from 'zod';
import { MEMORY_API_LIMITS as LIMITS, MEMORY_API_LIMITS } from '../../../../core/memory-limits.ts';
import { forgetFolder } from '../../forget-folder.ts';
import type { Memory } from '../../memory.ts';
import type { ErasureOptions, ErasureRequest } from '../../store.ts';
import { type Answer, defineEndpoint, type Endpoint, sessionId } from '../endpoint.ts';
import { MemoryError } from '../memory-error.ts';

const id = z.strictObject({ id: z.string().min(1).max(LIMITS.nameLength) });

/** Without a token, deletes what is there now. */
const options = z.strictObject({
  preview: z
    .enum(['true', 'false'])
    .transform((value) => value === 'true')
    .default(false),
  token: z.string().min(1).max(100).optional(),
});

async function erase(
  memory: Memory,
  what: string,
  request: ErasureRequest,
  { preview, token }: ErasureOptions,
): Promise<Answer> {
  const shown = await memory.store.erase(request, { preview: true });
  if (Object.values(shown.counts).every((count) => count === 0))
    throw new MemoryError('memory_not_found', `no ${what} has this id`);
  if (preview) return { body: shown };
  return { body: await memory.store.erase(request, { token }) };
}

const session = defineEndpoint({
  method: 'DELETE',
  audit: 'memory.delete',
  path: '/sessions/:id',
  params: z.strictObject({ id: sessionId }),
  query: options,
  run: ({ params, query, memory }) => erase(memory, 'session', { sessions: [params.id] }, query),
});

const document = defineEndpoint({
  method: 'DELETE',
  audit: 'memory.delete',
  path: '/documents/:id',
  params: id,
  query: options,
  run: ({ params, query, memory }) => erase(memory, 'document', { documents: [params.id] }, query),
});

const entity = defineEndpoint({
  method: 'DELETE',
  audit: 'memory.delete',
  path: '/entities/:id',
  params: id,
  query: options,
  async run({ params, query, memory }) {
    const [found] = await memory.store.entities([params.id]);
    if (found === undefined) throw new MemoryError('memory_not_found', 'no entity has this id');
    const elsewhere = ELSEWHERE[found.type];
    if (elsewhere !== undefined)
      throw new MemoryError('memory_invalid', `the entity is a ${found.type}: ${elsewhere}`);
    return erase(memory, 'entity', { entities: [found.name] }, query);
  },
});

/** What else to delete, by type; entities of agents are deleted themselves. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  workspace: 'delete its documents or its session',
  doc_file: 'delete the document with DELETE /documents/:id',
  doc_chunk: 'delete its document with DELETE /documents/:id',
  chat_message: 'delete its session with DELETE /sessions/:id',
};

const relation = defineEndpoint({
  method: 'DELETE',
  audit: 'memory.delete',
  path: '/relations',
  query: z.strictObject({
    from: z.string().min(1).max(LIMITS.nameLength),
    to: z.string().min(1).max(LIMITS.nameLength),
    relationType: z.string().min(1).max(LIMITS.nameLength),
  }),
  async run({ query, memory }) {
    const { deleted } = await memory.store.changeGraph({ deleteRelations: [query] });
    if (deleted.relations === 0)
      throw new MemoryError('memory_not_found', 'no such relation between entities of agents');
    return { body: { deleted: true } };
  },
});

/** Deletes by id. What is acknowledged as deleted is no longer on disk (docs/decisions/0053). */
export const deletions: readonly Endpoint[] = [session, document, entity, relation];

const request = z
  .strictObject({
    about: z.string().trim().min(2).max(MEMORY_API_LIMITS.nameLength).optional(),
    folder: z.string().min(1).max(MEMORY_API_LIMITS.nameLength).optional(),
    preview: z.boolean().default(false),
    token: z.string().min(1).max(100).optional(),
  })
  .refine(({ preview, token }) => preview || token !== undefined, {
    path: ['token'],
    message:
      'expected the token of a preview (`"preview": true`), so that what was shown is deleted, and nothing else',
  })
  .refine(({ about, folder }) => (about === undefined) !== (folder === undefined), {
    path: ['about'],
    message: 'expected a name or text in `about`, or else the path of a docs folder in `folder`',
  });

/** Deletes everything that mentions a name or text, or the documents of a docs folder, after a preview. */
export const forget = defineEndpoint({
  method: 'POST',
  path: '/forget',
  audit: 'memory.forget',
  body: request,
  run: async ({ body: { about, folder, ...options }, memory }) => ({
    body:
      folder === undefined
        ? await memory.store.erase({ about }, options)
        : await forgetFolder(memory, folder, options),
  }),
});
