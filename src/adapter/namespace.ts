import { MEMORY_STORE_LIMITS } from '../core/memory-limits.ts';

/** The namespace of callers that name none; the documents folder belongs to it. */
export const DEFAULT_NAMESPACE = 'default';
/** Request header that names the namespace, set by a gateway that has authenticated the caller. */
export const NAMESPACE_HEADER = 'x-memory-namespace';

const { namespaceLength } = MEMORY_STORE_LIMITS;

/**
 * What a namespace is called, in words for an error. User ids of identity providers fit: UUIDs, e-mail addresses,
 * `auth0|…`. A comma is excluded, because proxies join repeated headers with one.
 */
export const NAMESPACE_FORM = `1 to ${namespaceLength} printable ASCII characters without spaces and commas`;

/** Whether the text may name a namespace. Names are case-sensitive. */
export function isNamespace(text: unknown): text is string {
  return (
    typeof text === 'string' &&
    text.length <= namespaceLength &&
    // Printable ASCII without space (0x20) and comma (0x2c).
    /^[\x21-\x2b\x2d-\x7e]+$/.test(text)
  );
}
