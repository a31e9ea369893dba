import { randomUUID } from 'node:crypto';
import { DIMENSIONS, type NewDocument, type NewEntity } from '../../../src/adapter/memory/store.ts';

export const EMBEDDER = 'test/128';

/** A unit vector that points mostly along one axis; equal seeds give equal vectors. */
export function vector(axis: number, tilt = 0): Float32Array {
  const values = new Float32Array(DIMENSIONS);
  values[axis % DIMENSIONS] = Math.cos(tilt);
  values[(axis + 1) % DIMENSIONS] += Math.sin(tilt);
  return values;
}

export function entity(fields: Partial<NewEntity> = {}): NewEntity {
  const id = fields.id ?? randomUUID();
  return {
    id,
    name: `name of ${id}`,
    type: 'workspace',
    content: `content of ${id}`,
    metadata: {},
    embedding: undefined,
    searchText: '',
    ...fields,
  };
}

/** A document of one file and some chunks, each chunk with a text and a vector of its own. */
export function documentOf(
  key: string,
  texts: readonly string[],
  fields: Partial<NewDocument> = {},
): NewDocument {
  const file = entity({ id: `file:${key}`, name: key, type: 'doc_file', content: key });
  const chunks = texts.map((text, index) =>
    entity({
      id: `chunk:${key}:${index}:${text.slice(0, 100)}`,
      name: `${key} > ${index}`,
      type: 'doc_chunk',
      content: text,
      searchText: text,
      embedding: vector(index),
      metadata: { ordinal: index },
    }),
  );
  return {
    key,
    origin: 'docs_dir',
    hash: `hash of ${texts.join()}`,
    embedder: EMBEDDER,
    entities: [file, ...chunks],
    relations: chunks.map((chunk, index) => ({
      fromId: chunk.id,
      toId: file.id,
      relationType: 'BELONGS_TO',
      weight: 1 - index / 1000,
    })),
    ...fields,
  };
}

export function turn(sessionId: string, content: string, idempotencyKey?: string) {
  return { sessionId, agentId: 'agent', role: 'user' as const, content, idempotencyKey };
}
