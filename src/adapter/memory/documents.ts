import { createHash } from 'node:crypto';
import { AppError } from '../../core/errors.ts';
import { MEMORY_STORE_LIMITS } from '../../core/memory-limits.ts';
import { type Embedder, embeddedText, searchable } from './embed/embedder.ts';
import { chunkId, documentId } from './ids.ts';
import { CHUNKER_VERSION, type MarkdownDocument, markdownDocument } from './markdown/document.ts';
import type { SiteBase } from './markdown/links.ts';
import type { DocumentRecord, NewEntity, Origin, Relation, Store } from './store.ts';

export interface Backend {
  readonly store: Store;
  readonly embedder: Embedder;
}

/** A document to store. */
export interface Source {
  readonly origin: Origin;
  /** Identifies the document when it is stored again. */
  readonly key: string;
  /** Default: the title in the document itself. */
  readonly title?: string | undefined;
  /** Origin of the document, as given by the caller. */
  readonly source?: string | undefined;
  /** Path in the docs folder; its extension decides whether the document is MDX. */
  readonly path?: string | undefined;
  /** Number of the docs folder, if it is not the first one of the memory. */
  readonly folder?: number | undefined;
  readonly content: string;
  /** Id of the folder's workspace. */
  readonly workspace?: string | undefined;
  /** Where the folder is on its site. */
  readonly siteBase?: SiteBase | undefined;
}

export interface StoredDocument {
  readonly id: string;
  readonly title: string;
  readonly source: string | null;
  readonly status: 'created' | 'updated' | 'unchanged';
  readonly chunks: number;
}

export interface PutOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called with the number of chunks embedded so far. */
  readonly embedded?: (count: number) => void;
  /** Called only if the document has changed. */
  readonly beforeWrite?: () => Promise<void>;
}

/** Hash of a document's text, which a renamed file keeps. */
export function contentHash(content: string): string {
  return createHash('sha256').update(content).digest('hex');
}

/** Hash that changes with the document, its place, the chunking, and how links are read. */
function documentHash(hash: string, { title, source, path, siteBase }: Source): string {
  const head = JSON.stringify([title ?? null, source ?? null, path ?? null]);
  const base = siteBase === undefined ? '' : `\0${JSON.stringify([siteBase.origin ?? '', siteBase.path])}`;
  return createHash('sha256').update(`${head}\0${hash}\0${CHUNKER_VERSION}${base}`).digest('hex');
}

/**
 * Refuses a document that is too large.
 *
 * @throws AppError `body_too_large`, answered with status 413
 */
export function checkDocumentSize(bytes: number): void {
  if (bytes <= MEMORY_STORE_LIMITS.documentBytes) return;
  throw new AppError('body_too_large', {
    message: `the document has ${bytes} bytes, the maximum is ${MEMORY_STORE_LIMITS.documentBytes}: split it`,
  });
}

/**
 * Stores one document: splits it into chunks and replaces the old version as a whole. An unchanged document is not
 * written. An immediate embedder embeds the chunks first; otherwise `EmbeddingQueue` does it afterwards, and must be
 * woken by the caller. Its links become relations later (`docs-relations.ts`), when their targets
 * exist.
 *
 * @throws AppError `body_too_large`; nothing is stored then
 */
export async function putDocument(
  { store, embedder }: Backend,
  source: Source,
  { signal, embedded, beforeWrite }: PutOptions = {},
): Promise<StoredDocument> {
  checkDocumentSize(Buffer.byteLength(source.content));
  const content = contentHash(source.content);
  const hash = documentHash(content, source);
  const known = await store.document(source.origin, source.key);
  if (known?.hash === hash) return unchanged(store, source, known);
  const document = markdownDocument(source.content, source.path ?? source.key, source.title, source.siteBase);
  const identity = await identityOf(store, source, known);
  const chunks = chunkEntities(source, document, identity);
  const fresh = embedder.isImmediate ? await newTexts(store, source.origin, identity, known, chunks) : [];
  const embeddings = fresh.length === 0 ? [] : await embedder.embed(fresh, signal, embedded);
  const vectors = new Map(fresh.map((text, index) => [text, embeddings[index]]));
  signal?.throwIfAborted();
  await beforeWrite?.();
  // A document of the docs folder lives as long as its file.
  const stored = source.origin === 'ingest' ? { storedAt: new Date().toISOString() } : {};
  const file = { ...fileEntity(source, document, content, identity), ...stored };
  await store.putDocument({
    key: source.key,
    origin: source.origin,
    hash,
    embedder: embedder.id,
    entities: [
      file,
      ...chunks.map((chunk) => ({
        ...chunk,
        ...stored,
        embedding: searchable(vectors.get(embeddedText(chunk))),
      })),
    ],
    relations: belongings(file.id, chunks, source.workspace),
  });
  return {
    id: file.id,
    title: document.title,
    source: source.source ?? null,
    status: known === undefined ? 'created' : 'updated',
    chunks: chunks.length,
  };
}

async function unchanged(
  store: Store,
  source: Source,
  { id, chunks }: { readonly id: string; readonly chunks: number },
): Promise<StoredDocument> {
  const title = source.title ?? (await store.entities([id]))[0]?.name ?? source.key;
  return { id, title, source: source.source ?? null, status: 'unchanged', chunks };
}

/**
 * Stores a document from a call. It replaces the document with the same source, or without a source the one with the
 * same title.
 *
 * @throws AppError as `putDocument`
 */
export function ingestDocument(
  backend: Backend,
  {
    title,
    content,
    source,
  }: { readonly title: string; readonly content: string; readonly source?: string | undefined },
  signal?: AbortSignal,
): Promise<StoredDocument> {
  const from = source === undefined ? undefined : storable(source);
  const name = storable(title);
  return putDocument(
    backend,
    { origin: 'ingest', key: from ?? name, title: name, source: from, content },
    { signal },
  );
}

/** Replaces NUL and lone surrogates, which not every store can keep. */
function storable(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed();
}

/** Texts of chunks that the stored document does not have: the store keeps the vectors of the others. */
async function newTexts(
  store: Store,
  origin: Origin,
  identity: string,
  known: DocumentRecord | undefined,
  chunks: readonly NewEntity[],
): Promise<string[]> {
  const ids = Array.from({ length: known?.chunks ?? 0 }, (_, ordinal) => chunkId(origin, identity, ordinal));
  const stored = new Set<string>();
  for (let start = 0; start < ids.length; start += READ_TOGETHER)
    for (const chunk of await store.entities(ids.slice(start, start + READ_TOGETHER)))
      stored.add(embeddedText(chunk));
  return [...new Set(chunks.map(embeddedText))].filter((text) => !stored.has(text));
}

/** Chunks that are read together. */
const READ_TOGETHER = 200;

/**
 * What the ids of a document and its chunks are made of: the path or key under which it was stored first, which a renamed one keeps. A new
 * document gets a number if an other one was stored with its path, or has it in another docs folder.
 */
async function identityOf(store: Store, source: Source, known: DocumentRecord | undefined): Promise<string> {
  const { origin } = source;
  const own = ownIdentity(source);
  if (known?.id === documentId(origin, own)) return own;
  if (known !== undefined) {
    const [file] = await store.entities([known.id]);
    const { identity, path } = file?.metadata ?? {};
    const kept = [identity, path].find(
      (one) => typeof one === 'string' && documentId(origin, one) === known.id,
    );
    if (typeof kept === 'string') return kept;
  }
  let identity = own;
  for (let count = 2; (await store.entities([documentId(origin, identity)])).length > 0; count += 1)
    identity = `${own} ${count}`;
  return identity;
}

const ownIdentity = ({ key, path }: Source): string => path ?? key;

/** A name that stores take. The title and headings are complete in the metadata. */
function nameOf(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= MEMORY_STORE_LIMITS.nameBytes) return text;
  // Half a character at the end becomes one of three bytes.
  return `${bytes.subarray(0, MEMORY_STORE_LIMITS.nameBytes - 6).toString()}…`;
}

function fileEntity(
  source: Source,
  document: MarkdownDocument,
  content: string,
  identity: string,
): NewEntity {
  const { origin, key, path, folder } = source;
  return {
    id: documentId(origin, identity),
    name: nameOf(document.title),
    type: 'doc_file',
    content: document.summary,
    metadata: {
      origin,
      source: source.source ?? path ?? key,
      ...(path === undefined ? {} : { path }),
      ...(folder === undefined ? {} : { folder }),
      title: document.title,
      chunks: document.chunks.length,
      contentHash: content,
      ...(identity === ownIdentity(source) ? {} : { identity }),
      links: Object.fromEntries(document.links),
      ...(document.dependencies.length === 0 ? {} : { dependsOn: document.dependencies }),
    },
    // Its chunks are searched; searching the file entity too would return duplicates.
    embedding: undefined,
    searchText: '',
  };
}

function chunkEntities(source: Source, { title, chunks }: MarkdownDocument, identity: string): NewEntity[] {
  const { origin, key, path, folder } = source;
  return chunks.map(({ text, headings, anchor, line, sections }, ordinal) => {
    const heading = headings.join(' > ');
    const name = nameOf(heading === '' ? title : `${title} > ${heading}`);
    return {
      id: chunkId(origin, identity, ordinal),
      name,
      type: 'doc_chunk',
      content: text,
      metadata: {
        origin,
        source: source.source ?? path ?? key,
        ...(path === undefined ? {} : { path }),
        ...(folder === undefined ? {} : { folder }),
        title,
        heading,
        ...(anchor === undefined ? {} : { anchor }),
        line,
        ordinal,
        ...(sections === undefined
          ? {}
          : {
              sections: sections.map(({ headings: path, ...at }) => ({ heading: path.join(' > '), ...at })),
            }),
      },
      embedding: undefined,
      title,
      heading,
      searchText: text,
    };
  });
}

function belongings(file: string, chunks: readonly NewEntity[], workspace: string | undefined): Relation[] {
  const relationType = 'BELONGS_TO';
  const relations: Relation[] = chunks.map(({ id }) => ({ fromId: id, toId: file, relationType, weight: 1 }));
  if (workspace !== undefined) relations.push({ fromId: file, toId: workspace, relationType, weight: 1 });
  return relations;
}
