import { LIMITS } from '../../../core/limits.ts';
import type { Target } from './target.ts';

const seen = new WeakMap<Target, readonly string[]>();

/** Keeps names of tools that a target has listed, in any session, for the admin server; `isMore`: in a further page of the list. */
export function toolsListed(target: Target, names: readonly string[], isMore = false): void {
  const before = isMore ? (seen.get(target) ?? []) : [];
  const added = names
    .slice(0, LIMITS.shownTools - before.length)
    .map((name) => name.slice(0, LIMITS.logFieldLength));
  seen.set(target, [...before, ...added]);
}

/** Names at the target of the tools in its latest list, in any session; undefined before the first. */
export const seenTools = (target: Target): readonly string[] | undefined => seen.get(target);
