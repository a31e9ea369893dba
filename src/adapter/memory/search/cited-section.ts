import { elementsOf, membersOf, numberIn, stringIn } from '../../../core/foreign.ts';
import type { Entity } from '../store.ts';
import { isStopWord, stemOf, wordsOf } from '../tokenizer.ts';

/** What a result says of the place of a passage. */
type Cited = Pick<Entity, 'name' | 'metadata'>;

/**
 * Small sections share a passage: of these, the one that has most of the query is cited, with its heading, anchor and line. The first of
 * several that have equally much.
 */
export function citedSection(
  { name, content, metadata }: Pick<Entity, 'name' | 'content' | 'metadata'>,
  query: string,
): Cited {
  const { sections, ...own } = metadata;
  const inside = elementsOf(sections).map(membersOf);
  if (inside.length === 0) return { name, metadata };
  const lines = content.split('\n');
  const begins = [0, ...inside.map(({ at }) => numberIn(at) ?? 0)];
  const wanted = new Set(
    wordsOf(query)
      .filter((word) => !isStopWord(word))
      .map(stemOf),
  );
  // Rare words, which tell more, are usually longer.
  const weights = begins.map((begin, index) => {
    const stems = new Set(wordsOf(lines.slice(begin, begins[index + 1]).join('\n')).map(stemOf));
    return [...wanted].filter((stem) => stems.has(stem)).reduce((sum, stem) => sum + stem.length, 0);
  });
  const best = weights.indexOf(Math.max(...weights));
  const section = inside[best - 1];
  if (section === undefined) return { name, metadata: own };
  const heading = stringIn(section['heading']) ?? '';
  const { line, anchor } = section;
  const title = stringIn(own['title']) ?? '';
  const { anchor: _first, ...others } = own;
  return {
    name: heading === '' ? title : `${title} > ${heading}`,
    metadata: {
      ...others,
      heading,
      ...(anchor !== undefined && { anchor }),
      ...(line !== undefined && { line }),
    },
  };
}
