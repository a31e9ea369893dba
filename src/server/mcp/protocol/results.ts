import { edit, insertion, valueAt } from '../../kernel/json/json-text.ts';

/** Methods whose results say how long they may be cached (2026-07-28, "Caching"). */
const CACHEABLE: ReadonlySet<string> = new Set([
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
]);

/**
 * Adds the members that revision 2026-07-28 requires to a result, as JSON text of the response, of an older revision. A result
 * of the gateway must not be cached: it depends on the caller and on rules that may change.
 */
export function completed(text: string, method: string): string {
  const result = valueAt(text, ['result']);
  if (result === undefined || valueAt(text, ['result', 'resultType']) !== undefined) return text;
  const change = insertion(text, result.start, completeMembers(method));
  return change === undefined ? text : edit(text, [change]);
}

/** The members of a complete result, as JSON text. */
export const completeMembers = (method: string): string =>
  CACHEABLE.has(method)
    ? '"resultType":"complete","ttlMs":0,"cacheScope":"private"'
    : '"resultType":"complete"';

/** Marks a cacheable result as one for this caller only, because rules decide what the caller may see. */
export function privateResult(text: string, method: string): string {
  if (!CACHEABLE.has(method)) return text;
  const scope = valueAt(text, ['result', 'cacheScope']);
  return scope === undefined ? text : edit(text, [{ ...scope, text: '"private"' }]);
}
