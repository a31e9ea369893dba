import { elementsOf } from '../../../core/foreign.ts';
import type { AddedMessage, Fields } from './format.ts';

/** Adds items before and after those of a field, if it has a list. */
export function surround(
  body: Fields,
  field: string,
  { prepend, append }: { readonly prepend: readonly object[]; readonly append: readonly object[] },
): void {
  const messages = body.get(field);
  if (prepend.length + append.length > 0 && Array.isArray(messages))
    body.set(field, [...prepend, ...elementsOf(messages), ...append]);
}

/** For APIs whose messages have no system role, but a field for it. */
export const isSystem = ({ role }: AddedMessage): boolean => role === 'system' || role === 'developer';
