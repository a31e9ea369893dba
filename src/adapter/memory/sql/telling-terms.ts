/** A word in more entities than this, and in a quarter of them, decides nothing and costs most of a search. */
const COMMON = 5_000;
const COMMON_SHARE = 4;

/** Of terms and in how many of `total` entities each occurs, those to search for. */
export function tellingTerms(total: number, counts: ReadonlyMap<string, number>): [string, number][] {
  const found = [...counts].filter(([, count]) => count > 0);
  const telling = found.filter(([, count]) => count <= Math.max(COMMON, total / COMMON_SHARE));
  return telling.length > 0 ? telling : found;
}
