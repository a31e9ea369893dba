import { plainWords as wordsIn } from '../plain-words.ts';
import { withPairs } from '../tokenizer.ts';

/** A query in PostgreSQL's syntax for the words of a text, next to each other unless another operator is given. */
export function phrase(text: string, operator = '<->'): string {
  return plainWords(text)
    .split(' ')
    .map((word) => `'${word}'`)
    .join(` ${operator} `);
}

/** PostgreSQL refuses a text whose words take more than a megabyte; this many characters never do. */
const MOST_CHARACTERS = 200_000;
const LONGEST_WORD = 255;

/**
 * PostgreSQL's own parser would keep `mcp.host` as a host name, which a search for `host` does not find, and a text
 * without spaces as one word.
 */
export function plainWords(text: string): string {
  const shown = text.slice(0, MOST_CHARACTERS);
  return wordsIn((withPairs(shown) ?? shown).slice(0, MOST_CHARACTERS))
    .filter((word) => word.length <= LONGEST_WORD)
    .join(' ');
}
