import { counted } from '../../../core/render/counted.ts';
import { DEFAULT_NAMESPACE } from '../../namespace.ts';
import type { EntityType } from '../store.ts';
import type { Searched } from './query-vector.ts';
import { queryWords, rounded } from './query-words.ts';

/** What a search without results has looked for. */
interface Asked {
  readonly query: string;
  readonly minScore: number;
  readonly types?: readonly EntityType[] | undefined;
  readonly isTurnSearch?: boolean | undefined;
}

interface Best {
  readonly score: number;
  readonly entity: { readonly name: string; readonly type: string };
}

/** Types of entities that are embedded; the others are only found through the graph. */
export const SEARCHED: ReadonlySet<EntityType> = new Set(['doc_chunk', 'chat_message', 'entity']);

/** Best scores of unrelated queries are usually below this (docs/memory.md, Retrieval). */
const UNRELATED = 0.35;

/**
 * Explains why a search found nothing, and what to do about it.
 *
 * @param best the best candidate below `minScore`, if there is one
 */
export async function hintFor(
  { store, embedder, namespace = DEFAULT_NAMESPACE }: Searched,
  asked: Asked,
  best: Best | undefined,
): Promise<string> {
  const { entities, turns } = await store.stats();
  const searchable = [...SEARCHED].reduce((sum, type) => sum + entities[type], 0);
  // A user who has stored turns of a conversation will search for them here first.
  const conversations =
    turns === 0 || asked.isTurnSearch === true
      ? []
      : [
          `Conversations (${counted(turns, 'turn')}) are stored, but were not searched: \`turns: true\` does that`,
        ];
  if (queryWords(asked.query, 1).length === 0)
    return 'the query has no words: ask in words that an answer may contain';
  if (searchable === 0) {
    const what = turns === 0 ? 'nothing is stored yet' : 'no document is stored yet';
    return [emptyHint(what, namespace), ...conversations].join('. ');
  }
  // Who names the wrong namespace cannot tell it from one that has no answer.
  const where =
    namespace === DEFAULT_NAMESPACE
      ? []
      : [`Only the namespace "${namespace}" was searched; the docs folder belongs to "${DEFAULT_NAMESPACE}"`];
  return [reasonOf(entities, embedder.id, asked, best), ...where, ...conversations].join('. ');
}

function emptyHint(what: string, namespace: string): string {
  if (namespace === DEFAULT_NAMESPACE)
    return `${what}: store documents with ingest_document, or add .md files to the docs folder`;
  return (
    `${what} in the namespace "${namespace}": check its name, which is case-sensitive, or store documents with ingest_document. The docs folder ` +
    `belongs to the namespace "${DEFAULT_NAMESPACE}"`
  );
}

function reasonOf(
  entities: Readonly<Record<EntityType, number>>,
  embedder: string,
  { minScore, types }: Asked,
  best: Best | undefined,
): string {
  if (best !== undefined) {
    const score = rounded(best.score);
    const name = best.entity.name.slice(0, 200);
    const start = `no result reaches minScore ${minScore}; the best score was ${score}, of "${name}" (${best.entity.type}).`;
    return best.score < UNRELATED
      ? `${start} Nothing stored seems to be related: use other words, such as names and terms of the documents`
      : `${start} \`minScore: ${Math.floor(score * 100) / 100}\` returns it; or use words that occur in the documents`;
  }
  if (types !== undefined) return typesHint(types, entities);
  return (
    `no stored text contains a word of the query, and none is embedded with ${embedder} yet: use words that occur in the ` +
    'documents, or search again later'
  );
}

function typesHint(types: readonly EntityType[], entities: Readonly<Record<EntityType, number>>): string {
  const others = [...SEARCHED].filter((type) => !types.includes(type) && entities[type] > 0);
  const elsewhere = others.map((type) => `${entities[type]} ${type}`).join(', ');
  const where = elsewhere === '' ? '' : `; other types have entities: ${elsewhere}`;
  if (!types.some((type) => SEARCHED.has(type)))
    return `${types.join(', ')} is not searched, only traversed in the graph${where}`;
  return `no ${types.join(', ')} matches${where}`;
}
