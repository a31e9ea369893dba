import { type Backend, documentHash } from './documents.ts';
import { embeddedText, searchable } from './embed/embedder.ts';
import { chunkId } from './ids.ts';
import type { DocumentRecord, Entity, NewEntity, SearchFields } from './store.ts';

const PAGE = 200;
const NOTE = 'embedder';

/** The texts to embed again. */
interface Texts {
  readonly done: (count: number) => void;
  readonly signal: AbortSignal;
}

/**
 * Embeds texts again that do not come from the docs folder, after the embedder was changed: ingested documents and
 * indexed chat turns. Continues where it was interrupted.
 */
export async function embedAgain(backend: Backend, texts: Texts): Promise<void> {
  const { store, embedder } = backend;
  const before = await store.note(NOTE);
  if (before === embedder.id) return;
  for (const record of await store.documents('ingest')) {
    texts.signal.throwIfAborted();
    await documentAgain(backend, record, texts);
  }
  await messagesAgain(backend, texts);
  await store.setNote(NOTE, embedder.id);
}

async function vectorsOf(
  { embedder }: Backend,
  entities: readonly (Entity & SearchFields)[],
  { signal, done }: Texts,
): Promise<NewEntity[]> {
  const vectors = await embedder.embed(entities.map(embeddedText), signal);
  done(entities.length);
  return entities.map((entity, index) => ({ ...entity, embedding: searchable(vectors[index]) }));
}

async function documentAgain(backend: Backend, record: DocumentRecord, texts: Texts): Promise<void> {
  const { store, embedder } = backend;
  const [file] = await store.entities([record.id]);
  if (file === undefined) return;
  const hash = documentHash(String(file.metadata['contentHash']), embedder.id);
  if (hash === record.hash) return;
  const ids = Array.from({ length: record.chunks }, (_, ordinal) =>
    chunkId(record.origin, record.key, ordinal),
  );
  const entities = await vectorsOf(backend, await store.entities(ids), texts);
  await store.putDocument({
    key: record.key,
    origin: record.origin,
    hash,
    embedder: embedder.id,
    entities: [{ ...file, embedding: undefined }, ...entities],
    relations: entities.map(({ id }) => ({
      fromId: id,
      toId: file.id,
      relationType: 'BELONGS_TO',
      weight: 1,
    })),
  });
}

async function messagesAgain(backend: Backend, texts: Texts): Promise<void> {
  let cursor: string | undefined;
  do {
    texts.signal.throwIfAborted();
    const page = await backend.store.topology({ types: ['chat_message'], limit: PAGE, cursor });
    const messages = await backend.store.entities(page.nodes.map(({ id }) => id));
    if (messages.length > 0)
      await backend.store.putEntities(await vectorsOf(backend, messages, texts), [], backend.embedder.id);
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
}
