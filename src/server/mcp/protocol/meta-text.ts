import { type Edit, edit, insertion, valueAt, withoutMembers } from '../../kernel/json/json-text.ts';
import { META } from './protocol.ts';

// Members of `params._meta` that revision 2026-07-28 defines, in the JSON text of a message.

const ENVELOPE: ReadonlySet<string> = new Set(Object.values(META));

/** Removes the members that revision 2026-07-28 defines, for a peer of an older one. */
export const withoutEnvelope = (text: string): string =>
  withoutMembers(text, ['params', '_meta'], (key) => ENVELOPE.has(key));

/** Removes `params.task`, which requests a task at a server of 2025-11-25 and has no meaning in 2026-07-28. */
export const withoutTask = (text: string): string =>
  withoutMembers(text, ['params'], (key) => key === 'task');

/** Adds members, as JSON text without braces, to `_meta`. */
export function withMeta(text: string, added: string): string {
  const meta = valueAt(text, ['params', '_meta']);
  if (meta !== undefined) return applied(text, insertion(text, meta.start, added));
  return withParams(text, `"_meta":{${added}}`);
}

/** Adds members, as JSON text without braces, to `params`. */
export function withParams(text: string, added: string): string {
  const params = valueAt(text, ['params']);
  if (params !== undefined) return applied(text, insertion(text, params.start, added));
  return applied(text, insertion(text, text.indexOf('{'), `"params":{${added}}`));
}

/** Sets the request, by its id as JSON text, to whose subscription a notification belongs. */
export function withSubscription(text: string, id: string): string {
  const known = valueAt(text, ['params', '_meta', META.subscription]);
  if (known !== undefined) return edit(text, [{ ...known, text: id }]);
  return withMeta(text, `${JSON.stringify(META.subscription)}:${id}`);
}

const applied = (text: string, change: Edit | undefined): string =>
  change === undefined ? text : edit(text, [change]);
