import type { Entity } from '../store.ts';
import { wordsOf } from '../tokenizer.ts';

/** Share of common words from which two passages count as the same. */
const SAME = 0.9;
/** Different passages that are compared with each other, as a multiple of the requested results: more are hardly ever returned. */
const COMPARED = 3;

/** A passage, and those that say almost the same. */
export interface Distinct<T> {
  readonly passage: T;
  /** Best first. */
  readonly copies: readonly Copy<T>[];
}

export interface Copy<T> {
  readonly passage: T;
  /** Words that it has and the better passage has not, in the order of its text. */
  readonly differs: readonly string[];
}

interface Read<T> {
  readonly passage: T;
  /** Its place among the passages. */
  readonly rank: number;
  readonly words: ReadonlySet<string>;
}

/** Passages that say the same, with the same words of the query. */
interface Group<T> {
  readonly covered: ReadonlySet<string>;
  readonly members: [best: Read<T>, ...others: Read<T>[]];
}

type Passage = {
  readonly entity: Pick<Entity, 'content'>;
  readonly covered: ReadonlyMap<string, number>;
};

/**
 * Merges passages that almost repeat each other: the same page in two versions, or a paragraph that several pages share. Their place
 * is better used by another passage. Passages that a third one resembles belong together even if they resemble each other less, so
 * that it does not matter which of them is best. One that has a word of the query that the other lacks is not a copy of it: pages made
 * from a template differ only in such words. It stands for those that lack the word.
 *
 * @param passages best first
 * @param limit number of results that are returned of them
 */
export function distinct<T extends Passage>(passages: readonly T[], limit: number): Distinct<T>[] {
  const groups: Group<T>[] = [];
  // What the bound counts: groups of one text with other words of the query are merged later, or belong to a template.
  let texts = 0;
  let rank = 0;
  for (const passage of passages) {
    if (texts >= COMPARED * limit) break;
    const read = { passage, rank, words: new Set(wordsOf(passage.entity.content)) };
    const covered = new Set(passage.covered.keys());
    const alike = groups.filter(({ members }) => resembles(members, [read]));
    const same = alike.filter((group) => isEqual(covered, group.covered));
    if (same.length > 0) join(groups, same, read);
    else groups.push({ covered, members: [read] });
    if (alike.length === 0) texts += 1;
    rank += 1;
  }
  const rest = passages.slice(rank).map((passage) => ({ passage, copies: [] }));
  return [...merged(groups), ...rest];
}

/** Makes one group, at the place of the best, of a passage and those that it resembles. */
function join<T>(groups: Group<T>[], [best, ...others]: readonly Group<T>[], read: Read<T>): void {
  for (const other of others) {
    best?.members.push(...other.members);
    groups.splice(groups.indexOf(other), 1);
  }
  best?.members.push(read);
}

/** Each group with those that resemble it and lack words of the query that it has; of several, it goes to the best one. */
function merged<T extends Passage>(groups: readonly Group<T>[]): Distinct<T>[] {
  const copies = new Map<Group<T>, Read<T>[]>();
  for (const group of groups.toSorted((left, right) => right.covered.size - left.covered.size)) {
    const better = groups.find(
      (other) =>
        copies.has(other) &&
        isWithin(group.covered, other.covered) &&
        resembles(other.members, group.members),
    );
    const [best, ...others] = group.members;
    if (better === undefined) copies.set(group, others);
    else copies.get(better)?.push(best, ...others);
  }
  return [...copies]
    .map(([{ members }, others]) => ({ best: members[0], others }))
    .sort((left, right) => left.best.rank - right.best.rank)
    .map(({ best, others }) => ({
      passage: best.passage,
      copies: others.sort((left, right) => left.rank - right.rank).map(copyOf(best)),
    }));
}

function isEqual(stems: ReadonlySet<string>, others: ReadonlySet<string>): boolean {
  return stems.size === others.size && isWithin(stems, others);
}

function isWithin(stems: ReadonlySet<string>, others: ReadonlySet<string>): boolean {
  for (const stem of stems) if (!others.has(stem)) return false;
  return true;
}

/** Whether any of some passages says almost the same as any of others. */
function resembles<T extends Passage>(some: readonly Read<T>[], others: readonly Read<T>[]): boolean {
  return some.some((one) =>
    others.some(
      (other) =>
        isSame(one.words, other.words) &&
        deniesLike(one.passage.entity.content, other.passage.entity.content),
    ),
  );
}

function copyOf<T>(best: Read<T>): (copy: Read<T>) => Copy<T> {
  return ({ passage, words }) => ({ passage, differs: [...words].filter((word) => !best.words.has(word)) });
}

/** Words of denial, in English, German, Chinese and Japanese. */
const DENIALS =
  /\b(?:not|no|never|none|without|cannot|nicht|kein\w*|nie|niemals|ohne)\b|n['’]t\b|不|没|沒|ない|なく|ません/giu;

/** Whether both deny equally often: `may enter` and `may not enter` differ in one word and are not copies. */
function deniesLike(one: string, other: string): boolean {
  return (one.match(DENIALS)?.length ?? 0) === (other.match(DENIALS)?.length ?? 0);
}

/** Whether the Jaccard index of two texts' words is at least `SAME`. */
function isSame(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  const [small, large] = a.size < b.size ? [a, b] : [b, a];
  const needed = (SAME * (a.size + b.size)) / (1 + SAME);
  // Most texts have little in common: the comparison ends as soon as too few words remain.
  let possible = small.size;
  for (const word of small) {
    if (possible < needed) return false;
    if (!large.has(word)) possible -= 1;
  }
  return possible >= needed;
}

const collator = new Intl.Collator('en', { numeric: true });
const NUMBER = /\d+/g;

/**
 * Which of two equal passages comes first: that of the docs folder, that of the less deep folder, and of paths that differ in numbers
 * only, that of the higher one. So the current version of a documentation precedes earlier ones and translations.
 */
export function currentFirst(left: Pick<Entity, 'id' | 'metadata'>, right: typeof left): number {
  const [a, b] = [left.metadata['path'], right.metadata['path']];
  if (typeof a !== 'string' || typeof b !== 'string') {
    if (typeof a !== typeof b) return typeof a === 'string' ? -1 : 1;
    return left.id < right.id ? -1 : 1;
  }
  const depth = a.split('/').length - b.split('/').length;
  if (depth !== 0) return depth;
  const order = collator.compare(a, b);
  const isVersion = a.replace(NUMBER, '0') === b.replace(NUMBER, '0');
  return (isVersion ? -order : order) || (left.id < right.id ? -1 : 1);
}
