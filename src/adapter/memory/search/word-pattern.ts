/**
 * A pattern for any of some words and phrases, as whole words, whatever their case. In them, `~` stands for the endings of an
 * English verb without its `e`, `*` for any letters, `…` for a few words in between, which are not part of the match, and `$`
 * for the end of the clause; everything else is a regular expression.
 */
export function anyOf(...lists: readonly (readonly string[])[]): string {
  const alternatives = lists
    .flat()
    .map((word) =>
      word
        .replaceAll('~', '(?:e[sd]?|ing)')
        .replaceAll('*', '\\p{L}*')
        .replace('$', '(?=\\s*(?:[,;:.!?\\n]|$))')
        .replace(/…(.+)/, '(?=(?:\\s[^,;:.!?\\n]{0,60})?\\s$1(?![\\p{L}\\p{N}]))'),
    );
  return `(?<![\\p{L}\\p{N}])(?:${alternatives.join('|')})(?![\\p{L}\\p{N}])`;
}
