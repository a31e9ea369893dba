/**
 * After this many chunks, further chunks of the same document rank after those of other documents: a reader who wants
 * more of a document asks for it, one who needs another document never sees it.
 */
const OF_ONE_DOCUMENT = 1;

/**
 * Chooses the search results to return when more match than requested: the best ones, but a single long document does
 * not crowd out all others. Used by the memory backend, and by the page that shows the effect of another `minScore`.
 *
 * @param passed results that reached `minScore`, best first
 * @param documentOf identifies the document of a result
 * @returns at most `limit` results, not sorted
 */
export function selectResults<T>(
  passed: readonly T[],
  limit: number,
  documentOf: (result: T) => unknown,
): T[] {
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
