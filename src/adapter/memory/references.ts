import { linkedDocument } from './markdown/links.ts';
import type { DocumentRecord, NewEntity, Relation, Store } from './store.ts';

/** Documents processed together. */
const PAGE = 200;

/**
 * Creates relations for the links between documents of the docs folder. A link to a missing document becomes a relation
 * once the document exists: the metadata of the `doc_file` contains the links.
 *
 * @param changed keys of documents that are new or have new links; undefined for all
 */
export async function relateLinks(
  store: Store,
  documents: readonly DocumentRecord[],
  changed: ReadonlySet<string> | undefined,
  embedder: string,
  signal: AbortSignal,
): Promise<void> {
  const ids = new Map(documents.map(({ key, id }) => [key, id]));
  for (let start = 0; start < documents.length; start += PAGE) {
    signal.throwIfAborted();
    const page = documents.slice(start, start + PAGE);
    const files = await store.entities(page.map(({ id }) => id));
    const relations = files.flatMap(({ id, metadata }) => {
      const isChanged = changed === undefined || changed.has(String(metadata['path']));
      return linksIn(metadata).flatMap(([link, count]): Relation[] => {
        const target = linkedDocument(link, (path) => ids.has(path));
        const toId = target === undefined ? undefined : ids.get(target);
        if (target === undefined || toId === undefined || toId === id) return [];
        if (!isChanged && !changed.has(target)) return [];
        return [{ fromId: id, toId, relationType: 'REFERENCES', weight: count }];
      });
    });
    const none: readonly NewEntity[] = [];
    if (relations.length > 0) await store.putEntities(none, joined(relations), embedder);
  }
}

/** `guide` and `guide.md` are two links but one relation. */
function joined(relations: readonly Relation[]): Relation[] {
  const byEnds = new Map<string, Relation>();
  for (const relation of relations) {
    const key = `${relation.fromId} ${relation.toId}`;
    const weight = relation.weight + (byEnds.get(key)?.weight ?? 0);
    byEnds.set(key, { ...relation, weight });
  }
  return [...byEnds.values()];
}

function linksIn(metadata: Readonly<Record<string, unknown>>): [string, number][] {
  const links = metadata['links'];
  if (typeof links !== 'object' || links === null) return [];
  return Object.entries(links).map(([link, count]) => [link, Number(count)]);
}
