import { elements, members, type Span } from './json-text.ts';

/**
 * Writes a changed value with the text of everything in it that has not changed: numbers over 2^53 and `1.0` beside a
 * change stay as they were. `before` is what `JSON.parse` returns for `text`. Returns JSON text.
 */
export function writeChanged(text: string, before: unknown, after: unknown): string {
  const start = text.search(/\S/);
  return written(text, { start, end: text.trimEnd().length }, before, after);
}

function written(text: string, span: Span, before: unknown, after: unknown): string {
  if (Object.is(before, after)) return sourceOf(text, span);
  if (Array.isArray(before) && Array.isArray(after))
    return `[${writtenItems(text, span, before, after).join(',')}]`;
  if (!isObject(before) || !isObject(after)) return JSON.stringify(after);
  // Of duplicate members the last one counts, as for `JSON.parse`.
  const spans = new Map(members(text, span.start));
  const parts = Object.entries(after).flatMap(([key, value]) => {
    if (value === undefined) return [];
    const own = Object.hasOwn(before, key) ? spans.get(key) : undefined;
    const json = own === undefined ? JSON.stringify(value) : written(text, own, before[key], value);
    return [`${JSON.stringify(key)}:${json}`];
  });
  return `{${parts.join(',')}}`;
}

/** Lists of the same length have the same items, changed or not; in others, items were added or removed. */
function writtenItems(
  text: string,
  { start }: Span,
  before: readonly unknown[],
  after: readonly unknown[],
): string[] {
  const spans = elements(text, start);
  if (before.length === after.length)
    return after.map((item, index) => {
      const span = spans[index];
      return span === undefined ? JSON.stringify(item) : written(text, span, before[index], item);
    });
  // Of items that were only added, or only removed, each is found this far from the one before.
  const reach = 1 + Math.max(0, before.length - after.length);
  let next = 0;
  return after.map((item) => {
    const end = Math.min(before.length, next + reach);
    let at = next;
    while (at < end && !isSame(before[at], item)) at += 1;
    if (at === end) return JSON.stringify(item);
    next = at + 1;
    return sourceOf(text, spans[at]);
  });
}

const sourceOf = (text: string, span: Span | undefined): string => text.slice(span?.start, span?.end);

/** Whether two values of JSON are equal. */
function isSame(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((item, index) => isSame(item, other[index]));
  if (!isObject(one) || !isObject(other)) return false;
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && isSame(one[name], other[name]))
  );
}

/** An object of `JSON.parse` or of a literal; not a number that is kept as its text (`JSON.rawJSON`). */
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
