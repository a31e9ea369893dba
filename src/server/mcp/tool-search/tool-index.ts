import type MiniSearch from 'minisearch';
import { membersOf, parseJson, textIn } from '../../../core/foreign.ts';
import { LruMap } from '../../../core/lru-map.ts';
import { synonymsOf } from './synonyms.ts';
import { stem, wordsOf } from './words.ts';

/** A tool as clients see it: `text` is its definition as JSON text. */
export interface SearchableTool {
  /** Its name, and that of its server. */
  readonly words: string;
  readonly text: string;
}

/** Tools that are indexed in one turn of the event loop: 50 take about 10 ms (`npm run bench tool-search`). */
const CHUNK = 50;

/** Characters of a description that are indexed: what a tool does stands at the beginning. */
const INDEXED_CHARACTERS = 2_000;

/** Names of parameters that are indexed of one tool. */
const INDEXED_PARAMETERS = 100;

/** Levels of parameters: targets of kind `openapi` have the members of a body in the parameter `body`. */
const PARAMETER_LEVELS = 2;

/** A match in the name counts most: descriptions mention other tools too. */
const BOOST = { name: 3, title: 2, description: 1, parameters: 0.5 };

/** What a synonym counts, of what the word itself counts. */
const SYNONYM_WEIGHT = 0.6;

/** Terms whose scores are kept: 12 MB for a thousand tools that have all of them. */
const KEPT_TERMS = 500;

/** Words of a query that are searched; more cost time and make no query better. */
const QUERY_WORDS = 24;

/** How well a tool matches a query. */
interface Score {
  /** Of the words. */
  readonly sum: number;
  /** Number of words that match. */
  readonly matched: number;
  /** Number of words that are in its name. */
  named: number;
}

/** Finds tools by the words of their names, titles, descriptions and parameter names (BM25+). */
export class ToolIndex {
  readonly #index: MiniSearch;
  /** Queries have few words in common with each other, but their synonyms recur: this is most of the time of a search. */
  readonly #scores = new LruMap<string, Float64Array>(KEPT_TERMS);

  private constructor(index: MiniSearch) {
    this.#index = index;
  }

  /** Indexes tools in parts, so that other requests are answered meanwhile. Loads the package on first use. */
  static async of(tools: readonly SearchableTool[]): Promise<ToolIndex> {
    const { default: Index } = await import('minisearch');
    const index = new Index({
      fields: Object.keys(BOOST),
      tokenize: wordsOf,
      processTerm: stem,
      searchOptions: { boost: BOOST },
    });
    await index.addAllAsync(
      tools.map((tool, id) => ({ id, ...fieldsOf(tool) })),
      { chunkSize: CHUNK },
    );
    return new ToolIndex(index);
  }

  /**
   * Positions of the tools that match a query, best first. Of a word and its synonyms, the best match counts: a tool that has
   * several of them does not fit better. Tools that match more of the words come first, and before all others those whose names have
   * every word itself: a rare synonym would count more than a name with a frequent word.
   */
  search(query: string): number[] {
    const words = [...new Set(wordsOf(query).map(stem))].slice(0, QUERY_WORDS);
    const scores = new Map<number, Score>();
    for (const word of words) {
      const best = new Map<number, number>();
      this.#match(word, 1, best);
      for (const other of synonymsOf(word)) this.#match(other, SYNONYM_WEIGHT, best);
      for (const [id, score] of best) {
        const { sum, matched, named } = scores.get(id) ?? { sum: 0, matched: 0, named: 0 };
        scores.set(id, { sum: sum + score, matched: matched + 1, named });
      }
      for (const id of this.#named(word)) {
        const score = scores.get(id);
        if (score !== undefined) score.named += 1;
      }
    }
    const isNamed = ({ named }: Score): number => (named === words.length ? 1 : 0);
    const total = ({ sum, matched }: Score): number => sum * matched;
    return [...scores]
      .sort(([, one], [, other]) => isNamed(other) - isNamed(one) || total(other) - total(one))
      .map(([id]) => id);
  }

  /** Records the scores of the tools that have a term, where they are better. */
  #match(term: string, weight: number, best: Map<number, number>): void {
    const scores = this.#scoresOf(term);
    for (let at = 0; at < scores.length; at += 3) {
      const [id = 0, score = 0] = [scores[at], scores[at + 1]];
      best.set(id, Math.max(best.get(id) ?? 0, score * weight));
    }
  }

  /** Positions of the tools whose names have a term. */
  #named(term: string): number[] {
    const scores = this.#scoresOf(term);
    const named: number[] = [];
    for (let at = 0; at < scores.length; at += 3) if (scores[at + 2] === 1) named.push(scores[at] ?? 0);
    return named;
  }

  /** Positions and scores of the tools that have a term, and whether their names have it (1 or 0), in turn. */
  #scoresOf(term: string): Float64Array {
    const known = this.#scores.get(term);
    if (known !== undefined) return known;
    const found = this.#index.search(term, EXACT);
    const scores = Float64Array.from(
      found.flatMap(({ id, score, match }) => [
        Number(id),
        score,
        match[term]?.includes('name') === true ? 1 : 0,
      ]),
    );
    this.#scores.set(term, scores);
    return scores;
  }
}

/** The query is a term already. */
const EXACT = { tokenize: (term: string) => [term], processTerm: (term: string) => term };

function fieldsOf({ words, text }: SearchableTool): Record<keyof typeof BOOST, string> {
  const tool = membersOf(parseJson(text));
  const title = textIn(tool['title']) || textIn(membersOf(tool['annotations'])['title']);
  const parameters = parametersOf(tool['inputSchema'], PARAMETER_LEVELS).slice(0, INDEXED_PARAMETERS);
  return {
    name: words,
    title: title.slice(0, INDEXED_CHARACTERS),
    description: textIn(tool['description']).slice(0, INDEXED_CHARACTERS),
    parameters: parameters.join(' '),
  };
}

/** Names of parameters, and of the members of parameters that are objects. */
function parametersOf(schema: unknown, levels: number): string[] {
  const { properties } = membersOf(schema);
  return Object.entries(membersOf(properties)).flatMap(([name, each]) => [
    name,
    ...(levels === 1 ? [] : parametersOf(each, levels - 1)),
  ]);
}
