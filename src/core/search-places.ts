/** So many chunks of one document come before those of others. */
const OF_ONE_DOCUMENT = 3;

/**
 * Which search results are shown when there are more than asked for: the best, but one long document does not take the
 * place of all others. Used by the memory backend, and by the page that shows what another `minScore` would give.
 *
 * @param passed results that reached `minScore`, best first
 * @param documentOf what tells documents apart
 * @returns at most `limit`, not in order
 */
export function placed<T>(passed: readonly T[], limit: number, documentOf: (result: T) => unknown): T[] {
  const taken = new Map<unknown, number>();
  const first: T[] = [];
  const rest: T[] = [];
  for (const one of passed) {
    const document = documentOf(one);
    const count = taken.get(document) ?? 0;
    taken.set(document, count + 1);
    (count < OF_ONE_DOCUMENT ? first : rest).push(one);
  }
  return [...first, ...rest].slice(0, limit);
}
