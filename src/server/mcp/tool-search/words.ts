/**
 * Splits names and texts of tools, and queries, into words: `listPullRequests`, `list_pull_requests` and `List pull requests`
 * are the same words.
 */
export function wordsOf(text: string): string[] {
  return text
    .replaceAll(/(\p{Ll}|\d)(\p{Lu})/gu, '$1 $2')
    .replaceAll(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '' && !STOP_WORDS.has(word));
}

/** Words that say nothing about a tool. */
const STOP_WORDS = new Set(
  'a an and any are as at be by can do does for from has have how i if in into is it its me my of on one or our so some than that the their them then there these this those to use used user using want was we what when where which who will with you your'.split(
    ' ',
  ),
);

/**
 * The form in which words are compared: without the endings of plurals and verbs, so that `issues`, `comments` and `creating`
 * match `issue`, `comment` and `create`. Cruder than a stemmer, which makes one word of `organization` and `organ`.
 */
export function stem(word: string): string {
  if (word.length < 4) return word;
  const single = word
    .replace(/(?:ies)$/, 'y')
    .replace(/(ss|sh|ch|x|z)es$/, '$1')
    .replace(/([^su])s$/, '$1');
  const verb = single.replace(/(?<=.{3})(?:ing|ed)$/, '');
  // `creating`, `created` and `create`; `running` and `run`.
  return verb.replace(/([bdgmnprt])\1$/, '$1').replace(/(?<=.{3})e$/, '');
}
