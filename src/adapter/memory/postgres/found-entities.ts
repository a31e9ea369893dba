import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import type { SelectiveTerms } from '../sql/sql.ts';
import { phrase } from './word-query.ts';

type Terms = SelectiveTerms['selecting'];

export interface FoundBy {
  /** An expression for a query in PostgreSQL's syntax. */
  query(text: string): string;
  /** An expression for the list of types; undefined if all are searched. */
  readonly ofTypes: string | undefined;
  /** An expression for the sum of the weights of the words that a row has. */
  weight(alias: string): string;
  /** Entities that the search returns. */
  readonly limit: number;
}

/**
 * What follows FROM in a search by words: the entities `e` that are ranked. A GIN index contains no frequencies by which
 * it could return the best first, and visiting a row takes 1 to 5 µs, because rows are wide and each is in another page.
 * So not all entities with a common word are visited.
 */
export function foundEntities(terms: SelectiveTerms, by: FoundBy): string {
  const { selecting } = terms;
  const { ranked, rankedAll } = MEMORY_STORE_LIMITS;
  // Of the types that are searched, all entities with a common word may lack the others.
  const common = by.ofTypes === undefined ? selecting.filter(([, count]) => count > rankedAll) : [];
  if (common.length > 0) return atPlaces(withCommonTerms(terms, common, by));
  const isFound = by.query(any(selecting));
  if (sumOf(selecting) > ranked) return atPlaces(heaviest(isFound, by));
  return `memory_entities AS e WHERE e.words @@ ${isFound} ${isOfType('e', by)}`;
}

/**
 * Of the entities with a common term, those that also have another term, those in which it is prominent, and some of the
 * rest, which rank below them and differ only in their length.
 */
function withCommonTerms({ selecting, ranking }: SelectiveTerms, common: Terms, by: FoundBy): string {
  const { query, limit } = by;
  const { ranked } = MEMORY_STORE_LIMITS;
  const all = [...selecting, ...ranking];
  const rare = selecting.slice(0, selecting.length - common.length);
  const [commonest] = common;
  const first = commonest === undefined ? -1 : all.indexOf(commonest);
  const pairs = common.flatMap(([term], index) => {
    const others = all.slice(first + index + 1);
    return others.length === 0 ? [] : [`${phrase(term)} & (${any(others)})`];
  });
  const places = (condition: string, most: number): string =>
    `SELECT hit.ctid AS tuple FROM memory_entities AS hit WHERE ${condition} LIMIT ${most}`;
  const lists = [
    ...(rare.length === 0 ? [] : [places(`hit.words @@ ${query(any(rare))}`, ranked)]),
    ...(pairs.length === 0
      ? []
      : [
          sumOf(common) > ranked
            ? heaviest(query(pairs.join(' | ')), by)
            : places(`hit.words @@ ${query(pairs.join(' | '))}`, ranked),
        ]),
    // Prominent words have no positions, so the words of a phrase are prominent separately.
    places(
      `memory_prominent(hit.words) @@ ${query(common.map(([term]) => `(${phrase(term, '&')})`).join(' | '))}`,
      ranked,
    ),
    places(`hit.words @@ ${query(phrase(common[0]?.[0] ?? ''))}`, limit),
  ];
  return lists.map((list) => `(${list})`).join(' UNION ALL ');
}

/** The places of the best by weight alone. */
function heaviest(isFound: string, by: FoundBy): string {
  return `SELECT hit.tuple FROM
      (SELECT hit.ctid AS tuple, hit.row, ${readOnce('hit.words')} AS words FROM memory_entities AS hit
       WHERE hit.words @@ ${isFound} ${isOfType('hit', by)} OFFSET 0) AS hit
    ORDER BY ${by.weight('hit')} DESC, hit.row LIMIT ${MEMORY_STORE_LIMITS.ranked}`;
}

/**
 * The words of a long text are stored outside of its row, where every use of the column would read them again. For a
 * subquery with OFFSET, which is computed once per row.
 */
export function readOnce(words: string): string {
  return `${words} || ''::tsvector`;
}

/**
 * Entities read once each by their places in the table, which stay valid during the statement. As an array, because
 * PostgreSQL would join many places by reading the whole table.
 */
function atPlaces(places: string): string {
  return `memory_entities AS e WHERE e.ctid = ANY(ARRAY(${places}))`;
}

function isOfType(alias: string, { ofTypes }: FoundBy): string {
  return ofTypes === undefined ? '' : `AND ${alias}.type = ANY(${ofTypes})`;
}

function any(terms: Terms): string {
  return terms.map(([term]) => phrase(term)).join(' | ');
}

function sumOf(terms: Terms): number {
  return terms.reduce((sum, [, count]) => sum + count, 0);
}
