import type {
  DocumentRecord,
  Entity,
  FoundEntity,
  NewDocument,
  NewEntity,
  Origin,
  Relation,
  Store,
} from '../../../src/adapter/memory/store.ts';
import { stemOf, wordsOf } from '../../../src/adapter/memory/tokenizer.ts';

interface Kept extends NewEntity {
  readonly embedder: string;
  readonly document: string | undefined;
}

function found(one: Kept): FoundEntity {
  return { ...one, title: one.title ?? '', heading: one.heading ?? '' };
}

/** What a test may look at or break beside the interface. */
export interface FakeStore extends Store {
  readonly writes: number;
  readonly relations: ReadonlyMap<string, Relation>;
  /** Called before every write. */
  beforeWrite: () => void;
}

const stems = (text: string): string[] => [...wordsOf(text)].map(stemOf);
const unused = (): never => {
  throw new Error('the fake store does not do this');
};

/** A store in this process's memory: for what needs no engine, such as order, counting and failures. */
export function fakeStore(): FakeStore {
  const kept = new Map<string, Kept>();
  const relations = new Map<string, Relation>();
  const records = new Map<string, DocumentRecord>();
  const notes = new Map<string, unknown>();
  const running = new Set<string>();
  const counted = { writes: 0 };
  const idOf = (origin: Origin, key: string): string => `${origin} ${key}`;
  const relate = (list: readonly Relation[]): void => {
    for (const one of list) relations.set(`${one.fromId} ${one.toId} ${one.relationType}`, one);
  };
  const unrelate = (gone: (relation: Relation) => boolean): void => {
    for (const [key, relation] of relations) if (gone(relation)) relations.delete(key);
  };
  const inScope = (types: readonly string[] | undefined): Kept[] =>
    [...kept.values()].filter(({ type, searchText }) => searchText !== '' && (types?.includes(type) ?? true));
  const cosine = (left: Float32Array, right: Float32Array | undefined): number =>
    left.reduce((sum, value, index) => sum + value * (right?.[index] ?? 0), 0);
  const write = (): void => {
    store.beforeWrite();
    counted.writes += 1;
  };
  const dropped = (origin: Origin, key: string): ReadonlySet<string> => {
    const ids = new Set(
      [...kept.values()].filter(({ document }) => document === idOf(origin, key)).map(({ id }) => id),
    );
    for (const id of ids) kept.delete(id);
    return ids;
  };

  const store: FakeStore = {
    kind: 'sqlite',
    get writes() {
      return counted.writes;
    },
    relations,
    beforeWrite: () => undefined,
    appendTurn: unused,
    sessions: unused,
    turns: unused,
    searchTurns: unused,
    relatedTurns: unused,
    agentRelations: unused,
    importBatch: unused,
    erase: unused,
    expire: unused,
    changeGraph: unused,
    putExtraction: unused,
    readTexts: unused,
    storedTimes: unused,
    agentGraph: unused,
    async putEntities(entities, edges, embedder) {
      write();
      for (const entity of entities) kept.set(entity.id, { ...entity, embedder, document: undefined });
      relate(edges);
    },
    async putDocument(document: NewDocument) {
      write();
      const { origin, key, hash, embedder, entities } = document;
      const texts = new Map(
        [...kept.values()]
          .filter((one) => one.document === idOf(origin, key) && one.embedder === embedder)
          .map((one) => [`${one.title}\0${one.heading}\0${one.searchText}`, one.embedding]),
      );
      const gone = dropped(origin, key);
      const stay = new Set(entities.map(({ id }) => id));
      unrelate(({ fromId, toId }) => gone.has(fromId) || (gone.has(toId) && !stay.has(toId)));
      for (const entity of entities)
        kept.set(entity.id, {
          ...entity,
          embedding:
            entity.embedding ?? texts.get(`${entity.title}\0${entity.heading}\0${entity.searchText}`),
          embedder,
          document: idOf(origin, key),
        });
      relate(document.relations);
      const chunks = entities.filter(({ type }) => type === 'doc_chunk').length;
      records.set(idOf(origin, key), { key, origin, hash, id: entities[0]?.id ?? '', chunks });
    },
    document: async (origin, key) => records.get(idOf(origin, key)),
    documents: async (origin) => [...records.values()].filter((record) => record.origin === origin),
    renameDocuments: unused,
    async removeEntities(ids) {
      write();
      for (const id of ids) kept.delete(id);
      unrelate(({ fromId, toId }) => ids.includes(fromId) || ids.includes(toId));
      return ids.length;
    },
    async removeDocuments(origin, keys) {
      write();
      let count = 0;
      for (const key of keys) {
        if (!records.delete(idOf(origin, key))) continue;
        count += 1;
        const gone = dropped(origin, key);
        unrelate(({ fromId, toId }) => gone.has(fromId) || gone.has(toId));
      }
      return count;
    },
    async nearest(vector, embedder, { types, limit }) {
      return inScope(types)
        .filter((entity) => entity.embedder === embedder && entity.embedding !== undefined)
        .map((entity) => ({ ...found(entity), cosine: cosine(vector, entity.embedding) }))
        .sort((a, b) => b.cosine - a.cosine)
        .slice(0, limit);
    },
    async lexical(terms, { types, limit }, compared) {
      const wanted = terms.map(stemOf);
      return inScope(types)
        .map((one) => {
          const there = new Set(stems(one.searchText));
          return {
            ...found(one),
            rank: wanted.filter((stem) => there.has(stem)).length,
            cosine: compared?.embedder === one.embedder ? cosine(compared.vector, one.embedding) : undefined,
          };
        })
        .filter(({ rank }) => rank > 0)
        .sort((a, b) => b.rank - a.rank)
        .slice(0, limit);
    },
    async frequencies(terms) {
      const texts = inScope(undefined).map(({ searchText }) => new Set(stems(searchText)));
      const count = (term: string): number => texts.filter((text) => text.has(stemOf(term))).length;
      return { total: texts.length, counts: new Map(terms.map((term) => [term, count(term)])) };
    },
    async unembedded(embedder, { after, limit }) {
      return [...kept.values()]
        .map((one, index) => ({ ...one, title: one.title ?? '', heading: one.heading ?? '', row: index + 1 }))
        .filter((one) => one.searchText !== '' && (one.embedding === undefined || one.embedder !== embedder))
        .filter(({ row }) => row > after)
        .slice(0, limit);
    },
    unembeddedCount: async (embedder) =>
      [...kept.values()].filter(
        (one) => one.searchText !== '' && (one.embedding === undefined || one.embedder !== embedder),
      ).length,
    textCount: async () => [...kept.values()].filter((one) => one.searchText !== '').length,
    async putVectors(embedder, vectors) {
      write();
      const all = [...kept.values()];
      for (const { row, embedding } of vectors) {
        const one = all[row - 1];
        if (one !== undefined) kept.set(one.id, { ...one, embedding, embedder });
      }
    },
    keepVectorsOf: async () => 0,
    entities: async (ids) =>
      ids.flatMap((id) => {
        const one = kept.get(id);
        return one === undefined ? [] : found(one);
      }),
    byName: async (name, limit): Promise<Entity[]> =>
      [...kept.values()].filter((entity) => entity.name === name).slice(0, limit),
    similarNames: async (name, limit) =>
      [...kept.values()]
        .map((entity) => entity.name)
        .filter((other) => other.toLowerCase().includes(name.toLowerCase().slice(0, 3)))
        .slice(0, limit),
    async edges(ids, direction, limit) {
      const level = new Set(ids);
      return [...relations.values()]
        .filter(
          ({ fromId, toId }) =>
            (direction !== 'in' && level.has(fromId)) || (direction !== 'out' && level.has(toId)),
        )
        .slice(0, limit);
    },
    searchEntities: unused,
    topology: async ({ types }) => ({
      nodes: [...kept.values()].filter(({ type }) => types?.includes(type) ?? true),
      nextCursor: null,
    }),
    async stats() {
      const entities = { workspace: 0, doc_file: 0, doc_chunk: 0, chat_message: 0, entity: 0 };
      for (const { type } of kept.values()) entities[type] += 1;
      return {
        entities,
        relations: { BELONGS_TO: 0, REFERENCES: 0, DEPENDS_ON: 0, other: 0 },
        turns: 0,
        sessions: 0,
        documents: records.size,
        bytes: 0,
      };
    },
    async exclusively(name, task) {
      if (running.has(name)) return undefined;
      running.add(name);
      return task().finally(() => running.delete(name));
    },
    async setNote(key, value) {
      notes.set(key, value);
    },
    note: async (key) => notes.get(key),
    close: async () => undefined,
  };
  return store;
}
