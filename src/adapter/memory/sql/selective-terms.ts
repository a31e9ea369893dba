/**
 * A word in more entities than this, and in more than a quarter of all, hardly distinguishes results and costs most of
 * a search.
 */
const COMMON = 5_000;
const COMMON_SHARE = 4;

/** Selects the terms to search for, given the number of entities (of `total`) that contain each. */
export function selectiveTerms(total: number, counts: ReadonlyMap<string, number>): [string, number][] {
  const found = [...counts].filter(([, count]) => count > 0);
  const selective = found.filter(([, count]) => count <= Math.max(COMMON, total / COMMON_SHARE));
  return selective.length > 0 ? selective : found;
}
