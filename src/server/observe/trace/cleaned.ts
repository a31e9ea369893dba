import type { Scrubber } from '../../../core/trace/redact.ts';

/** A copy of a message without the secrets that are known. */
export function cleaned(value: unknown, scrubber: Scrubber, depth = 0): unknown {
  if (typeof value === 'string') return scrubber.text(value);
  if (Array.isArray(value)) return value.map((item) => cleaned(item, scrubber, depth + 1));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      isOurs(key, item, depth) ? item : cleaned(item, scrubber, depth + 1),
    ]),
  );
}

/** A credential that happens to be one of our words must not make an event unreadable. */
function isOurs(key: string, value: unknown, depth: number): boolean {
  if (depth === 0) return key === 'type' || key === 'stage' || key === 'kind' || key === 'phase';
  return depth === 1 && key === 'type' && (value === 'apply' || value === 'skip');
}
