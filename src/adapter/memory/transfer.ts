import { z } from 'zod';
import { AppError } from '../../core/errors.ts';
import { jsonIn } from '../../core/foreign.ts';
import { agentEntityId, chatMessageId, chunkId, documentId } from './ids.ts';
import type { Memory } from './memory.ts';
import type {
  DocumentRecord,
  ImportBatch,
  Imported,
  NewDocument,
  NewEntity,
  ReadText,
  Store,
  Turn,
} from './store.ts';

// One JSON object per line. `entity` and `relation` are those of memory.jsonl of @modelcontextprotocol/server-memory.

const name = z.string().min(1);
/** `extracted` if no agent has written it. Other programs do not know it. */
const origin = z.literal('extracted').optional().catch(undefined);
/** From when its time-to-live counts. */
const storedAt = z.iso.datetime().optional();
/** Of a text that a model has read: what it has extracted. */
const extraction = z
  .object({
    entities: z.array(z.object({ name, created: z.boolean() })),
    outdated: z.array(name).default([]),
  })
  .optional();
const line = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('entity'),
    name,
    entityType: z.string(),
    observations: z.array(z.string()),
    origin,
    storedAt,
  }),
  z.object({ type: z.literal('relation'), from: name, to: name, relationType: name, origin }),
  z.object({
    type: z.literal('turn'),
    id: name,
    sessionId: name,
    agentId: name,
    // Checked when it is stored (`checkImport`): an export has what the store has.
    role: name,
    content: z.string(),
    createdAt: z.iso.datetime(),
    indexed: z.boolean().optional(),
    extraction,
  }),
  z.object({
    type: z.literal('document'),
    key: name,
    hash: name,
    title: name,
    summary: z.string(),
    metadata: z.record(z.string(), z.unknown()),
    storedAt,
    chunks: z.array(
      z.object({
        name,
        heading: z.string(),
        content: z.string(),
        metadata: z.record(z.string(), z.unknown()),
        extraction,
      }),
    ),
  }),
]);
export type TransferLine = z.output<typeof line>;
type TurnLine = Extract<TransferLine, { type: 'turn' }>;
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
    const ids = page.entities.map((entity) => agentEntityId(entity.name));
    const times = await store.storedTimes(ids);
    const stored = await store.entities(ids);
    const origins = new Map(stored.map((entity) => [entity.name, entity.metadata['origin']]));
    for (const entity of page.entities)
      yield {
        type: 'entity',
        ...entity,
        observations: [...entity.observations],
        ...originOf(origins.get(entity.name) === EXTRACTED),
        storedAt: times.get(agentEntityId(entity.name)),
      };
    cursor = page.nextCursor ?? undefined;
  }
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const page = await store.agentRelations({ cursor, limit: PAGE });
    for (const { isExtracted, ...relation } of page.relations)
      yield { type: 'relation', ...relation, ...originOf(isExtracted) };
    cursor = page.nextCursor ?? undefined;
  }
  for (let cursor: number | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const page = await store.searchTurns({ order: 'oldest', limit: PAGE, cursor });
    yield* turnLines(store, page.turns);
    cursor = page.nextCursor ?? undefined;
  }
  for (const record of await store.documents('ingest')) {
    const document = await documentLine(store, record);
    if (document !== undefined) yield document;
  }
}

const EXTRACTED = 'extracted';

function originOf(isExtracted: boolean | undefined): { origin?: typeof EXTRACTED } {
  return isExtracted === true ? { origin: EXTRACTED } : {};
}

function extractionOf(read: ReadText | undefined): Pick<TurnLine, 'extraction'> {
  if (read === undefined) return {};
  return { extraction: { entities: [...read.entities], outdated: [...read.outdated] } };
}

async function* turnLines(store: Store, turns: readonly Turn[]): AsyncGenerator<TurnLine> {
  const ids = turns.map(({ id }) => chatMessageId(id));
  const indexed = new Set((await store.entities(ids)).map(({ id }) => id));
  const read = await store.readTexts(ids);
  for (const { seq: _seq, ...turn } of turns) {
    const id = chatMessageId(turn.id);
    yield {
      type: 'turn',
      ...turn,
      ...(indexed.has(id) ? { indexed: true } : {}),
      ...extractionOf(read.get(id)),
    };
  }
}

async function documentLine(store: Store, record: DocumentRecord): Promise<DocumentLine | undefined> {
  const [file] = await store.entities([record.id]);
  // Deleted since the list was read.
  if (file === undefined) return undefined;
  const ids = Array.from({ length: record.chunks }, (_, ordinal) => chunkId('ingest', record.key, ordinal));
  const chunks: DocumentLine['chunks'] = [];
  for (let start = 0; start < ids.length; start += PAGE) {
    const page = ids.slice(start, start + PAGE);
    const read = await store.readTexts(page);
    for (const chunk of await store.entities(page))
      chunks.push({
        name: chunk.name,
        heading: chunk.heading,
        content: chunk.content,
        metadata: { ...chunk.metadata },
        ...extractionOf(read.get(chunk.id)),
      });
  }
  return {
    type: 'document',
    key: record.key,
    hash: record.hash,
    title: file.name,
    summary: file.content,
    metadata: { ...file.metadata },
    storedAt: (await store.storedTimes([record.id])).get(record.id),
    chunks,
  };
}

/**
 * Stores the lines of an export in one transaction. What exists already is left as it is, so lines may be sent again.
 * Texts are embedded later.
 *
 * @throws AppError `memory_invalid` that names the line, counted from 1
 */
export function importLines(
  { store, embedder, indexesChat }: Pick<Memory, 'store' | 'embedder' | 'indexesChat'>,
  lines: readonly string[],
): Promise<Imported> {
  const batch = new Batch(embedder.id, indexesChat);
  for (const [index, text] of lines.entries()) {
    // Editors on Windows begin a file with a byte order mark.
    const one = index === 0 ? text.replace(/^\ufeff/, '') : text;
    if (one.trim() !== '') batch.add(parsed(one, index + 1));
  }
  return store.importBatch(batch);
}

class Batch implements ImportBatch {
  readonly entities: ImportBatch['entities'][number][] = [];
  readonly relations: ImportBatch['relations'][number][] = [];
  readonly turns: ImportBatch['turns'][number][] = [];
  readonly documents: NewDocument[] = [];
  readonly readTexts = new Map<string, ReadText>();
  readonly #embedder: string;
  readonly #indexesChat: boolean;

  constructor(embedder: string, indexesChat: boolean) {
    this.#embedder = embedder;
    this.#indexesChat = indexesChat;
  }

  add(line: TransferLine): void {
    if (line.type === 'document') {
      this.documents.push(documentOf(line, this.#embedder));
      for (const [ordinal, chunk] of line.chunks.entries())
        if (chunk.extraction !== undefined)
          this.readTexts.set(chunkId('ingest', line.key, ordinal), chunk.extraction);
    } else if (line.type === 'turn') {
      const { type: _, indexed, extraction: read, ...turn } = line;
      const isIndexed = (indexed === true || this.#indexesChat) && turn.content.trim() !== '';
      this.turns.push({ ...turn, isIndexed });
      if (read !== undefined) this.readTexts.set(chatMessageId(turn.id), read);
    } else if (line.type === 'entity') {
      const { type: _, origin: from, ...entity } = line;
      this.entities.push({ ...entity, isExtracted: from === EXTRACTED });
    } else {
      const { type: _, origin: from, ...relation } = line;
      this.relations.push({ ...relation, isExtracted: from === EXTRACTED });
    }
  }
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
  const now = new Date().toISOString();
  const storedAt = value.storedAt !== undefined && value.storedAt < now ? value.storedAt : now;
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
