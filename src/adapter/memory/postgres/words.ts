/** PostgreSQL refuses a text whose words take more than a megabyte; this many characters never do. */
const MOST_CHARACTERS = 200_000;
const LONGEST_WORD = 255;

/**
 * A text as plain words, cut as FTS5's `unicode61` cuts them: letters and digits, without case and accents.
 * PostgreSQL's own parser would keep `mcp.host` as the name of a computer, not to be found by `host`.
 */
export function plainWords(text: string): string {
  return text
    .slice(0, MOST_CHARACTERS)
    .normalize('NFD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .split(/[^\p{L}\p{N}\p{Co}]+/u)
    .filter((word) => word !== '' && word.length <= LONGEST_WORD)
    .join(' ');
}
