import { z } from 'zod';
import { AppError } from '../../core/errors.ts';
import { jsonIn } from '../../core/foreign.ts';
import { chunkId, documentId } from './ids.ts';
import type { DocumentRecord, ImportBatch, Imported, NewDocument, NewEntity, Store } from './store.ts';

// One JSON object per line. `entity` and `relation` are those of memory.jsonl of @modelcontextprotocol/server-memory.

const name = z.string().min(1);
const line = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('entity'),
    name,
    entityType: z.string(),
    observations: z.array(z.string()),
  }),
  z.object({ type: z.literal('relation'), from: name, to: name, relationType: name }),
  z.object({
    type: z.literal('turn'),
    id: name,
    sessionId: name,
    agentId: name,
    // Checked when it is stored (`checkImport`): an export has what the store has.
    role: name,
    content: z.string(),
    createdAt: z.iso.datetime(),
  }),
  z.object({
    type: z.literal('document'),
    key: name,
    hash: name,
    title: name,
    summary: z.string(),
    metadata: z.record(z.string(), z.unknown()),
    chunks: z.array(
      z.object({
        name,
        heading: z.string(),
        content: z.string(),
        metadata: z.record(z.string(), z.unknown()),
      }),
    ),
  }),
]);
export type TransferLine = z.output<typeof line>;
type DocumentLine = Extract<TransferLine, { type: 'document' }>;

/** Rows that are read together. */
const PAGE = 200;

/**
 * Everything that calls have stored, a line at a time: entities, relations, turns and ingested documents. Documents of
 * the docs folder are left out: the sync of another memory reads them from their files.
 */
export async function* exportLines(store: Store): AsyncGenerator<TransferLine> {
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const page = await store.agentGraph({ cursor });
    for (const entity of page.entities)
      yield { type: 'entity', ...entity, observations: [...entity.observations] };
    cursor = page.nextCursor ?? undefined;
  }
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const page = await store.agentRelations({ cursor, limit: PAGE });
    for (const relation of page.relations) yield { type: 'relation', ...relation };
    cursor = page.nextCursor ?? undefined;
  }
  for (let cursor: number | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const page = await store.searchTurns({ order: 'oldest', limit: PAGE, cursor });
    for (const { seq: _seq, ...turn } of page.turns) yield { type: 'turn', ...turn };
    cursor = page.nextCursor ?? undefined;
  }
  for (const record of await store.documents('ingest')) {
    const document = await documentLine(store, record);
    if (document !== undefined) yield document;
  }
}

async function documentLine(store: Store, record: DocumentRecord): Promise<DocumentLine | undefined> {
  const [file] = await store.entities([record.id]);
  // Deleted since the list was read.
  if (file === undefined) return undefined;
  const ids = Array.from({ length: record.chunks }, (_, ordinal) => chunkId('ingest', record.key, ordinal));
  const chunks: DocumentLine['chunks'] = [];
  for (let start = 0; start < ids.length; start += PAGE)
    for (const chunk of await store.entities(ids.slice(start, start + PAGE)))
      chunks.push({
        name: chunk.name,
        heading: chunk.heading,
        content: chunk.content,
        metadata: { ...chunk.metadata },
      });
  return {
    type: 'document',
    key: record.key,
    hash: record.hash,
    title: file.name,
    summary: file.content,
    metadata: { ...file.metadata },
    chunks,
  };
}

/**
 * Stores the lines of an export in one transaction. What exists already is left as it is, so lines may be sent again.
 * Texts are embedded later.
 *
 * @throws AppError `memory_invalid` that names the line, counted from 1
 */
export function importLines(store: Store, lines: readonly string[], embedder: string): Promise<Imported> {
  const batch: { -readonly [Kind in keyof ImportBatch]: ImportBatch[Kind][number][] } = {
    entities: [],
    relations: [],
    turns: [],
    documents: [],
  };
  for (const [index, text] of lines.entries()) {
    // Editors on Windows begin a file with a byte order mark.
    const one = index === 0 ? text.replace(/^\ufeff/, '') : text;
    if (one.trim() === '') continue;
    const value = parsed(one, index + 1);
    if (value.type === 'document') batch.documents.push(documentOf(value, embedder));
    else if (value.type === 'entity') {
      const { type: _, ...entity } = value;
      batch.entities.push(entity);
    } else if (value.type === 'relation') {
      const { type: _, ...relation } = value;
      batch.relations.push(relation);
    } else {
      const { type: _, ...turn } = value;
      batch.turns.push(turn);
    }
  }
  return store.importBatch(batch);
}

function parsed(text: string, number: number): TransferLine {
  const value = jsonIn(text);
  if (value === undefined) throw new AppError('memory_invalid', { message: `line ${number}: is not JSON` });
  const result = line.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const field = issue?.path.join('.') || 'type';
  throw new AppError('memory_invalid', {
    message: `line ${number}: \`${field}\`: ${(issue?.message ?? '').replace(/^Invalid input: /, '')}`,
  });
}

function documentOf(value: DocumentLine, embedder: string): NewDocument {
  const { key, hash, title, summary, metadata, chunks } = value;
  const id = documentId('ingest', key);
  const storedAt = new Date().toISOString();
  const file: NewEntity = {
    ...{ id, name: title, type: 'doc_file', content: summary, metadata, storedAt },
    ...{ embedding: undefined, searchText: '' },
  };
  const parts = chunks.map(
    (chunk, ordinal): NewEntity => ({
      ...{ id: chunkId('ingest', key, ordinal), name: chunk.name, type: 'doc_chunk', content: chunk.content },
      ...{ metadata: chunk.metadata, title, heading: chunk.heading, searchText: chunk.content },
      ...{ embedding: undefined, storedAt },
    }),
  );
  return {
    key,
    origin: 'ingest',
    hash,
    embedder,
    entities: [file, ...parts],
    relations: parts.map((part) => ({
      fromId: part.id,
      toId: id,
      relationType: 'BELONGS_TO',
      weight: 1,
    })),
  };
}
