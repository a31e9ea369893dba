import type { FastifyRequest } from 'fastify';
import { LIMITS } from '../core/limits.ts';
import type { VirtualKey } from '../server/budgets/virtual-key.ts';
import { InvalidParameter, limitOf, parametersOf } from './record-query.ts';

/** Keys of one page, newest first. */
export interface KeyPage {
  readonly keys: readonly VirtualKey[];
  /** The id after which the next page begins; undefined if there is none. */
  readonly next: string | undefined;
  /** How many keys all pages have. */
  readonly total: number;
  /** How many more there would be with those that are revoked. */
  readonly hidden: number;
}

/**
 * The keys that a request asks for: with `limit`, a page of those that `search` finds, without those that are revoked if `revoked` is
 * `false`. Without `limit`, all keys in the order of their creation.
 *
 * @throws InvalidParameter
 */
export function keyPage(request: FastifyRequest, all: readonly VirtualKey[]): KeyPage {
  const given = parametersOf(request, ['limit', 'after', 'search', 'revoked']);
  const limit = given.get('limit');
  if (limit === undefined && given.size > 0)
    throw new InvalidParameter('`search`, `revoked` and `after` are for pages: give `limit`, too');
  if (limit === undefined) return { keys: all, next: undefined, total: all.length, hidden: 0 };
  const revoked = given.get('revoked') ?? 'true';
  if (revoked !== 'true' && revoked !== 'false')
    throw new InvalidParameter('revoked is neither true nor false');
  const found = all.filter(matching(given.get('search') ?? '')).toReversed();
  const shown = revoked === 'true' ? found : found.filter(({ revokedAt }) => revokedAt === undefined);
  const start = startOf(shown, found, given.get('after'));
  const keys = shown.slice(start, start + limitOf(limit, LIMITS.keyPage));
  const isLast = start + keys.length >= shown.length;
  return {
    keys,
    next: isLast ? undefined : keys.at(-1)?.id,
    total: shown.length,
    hidden: found.length - shown.length,
  };
}

/** Whether the name, the id, the end or the metadata of a key contains a text, in whatever case. */
function matching(text: string): (key: VirtualKey) => boolean {
  const wanted = text.toLowerCase();
  return ({ id, name, hint, metadata }) =>
    wanted === '' || `${name}\n${id}\n${hint}\n${JSON.stringify(metadata)}`.toLowerCase().includes(wanted);
}

/** Where a page begins: after a key that may have been revoked since the page before was read. */
function startOf(
  shown: readonly VirtualKey[],
  found: readonly VirtualKey[],
  after: string | undefined,
): number {
  if (after === undefined) return 0;
  const place = found.findIndex(({ id }) => id === after);
  if (place === -1) throw new InvalidParameter('after is not the `next` of another page');
  const before = new Set(found.slice(0, place + 1));
  return shown.filter((key) => before.has(key)).length;
}
