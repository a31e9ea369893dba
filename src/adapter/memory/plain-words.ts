/** Unicode letters and digits; FTS5's `unicode61` splits a text at everything else. */
const NOT_WORD = /[^\p{L}\p{N}\p{Co}]+/u;

/** Splits a text into its words like FTS5's `unicode61`: letters and digits, without case and accents. */
export function plainWords(text: string): string[] {
  return text
    .normalize('NFD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .split(NOT_WORD)
    .filter((word) => word !== '');
}

/**
 * What two names have in common that a reader takes for the same one: `John_Smith`, `john smith` and `John-Smith` have
 * the key `john smith`. Empty for a name without letters and digits.
 */
export function nameKey(name: string): string {
  return plainWords(name).join(' ');
}
