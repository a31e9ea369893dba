/**
 * Compiles name patterns, in which `*` matches any number of characters. The function returns whether a name matches
 * one of them. Each part between stars is searched once, from left to right, so the time is bounded by the product of the
 * lengths: a regular expression could backtrack, and names come from servers.
 */
export function namePattern(patterns: readonly string[]): (name: string) => boolean {
  const compiled = patterns.map((pattern) => pattern.split('*'));
  return (name) => compiled.some((parts) => matches(parts, name));
}

function matches(parts: readonly string[], name: string): boolean {
  const [first = ''] = parts;
  if (parts.length === 1) return name === first;
  const last = parts.at(-1) ?? '';
  if (name.length < first.length + last.length || !name.startsWith(first) || !name.endsWith(last))
    return false;
  const end = name.length - last.length;
  let from = first.length;
  for (const part of parts.slice(1, -1)) {
    const at = name.indexOf(part, from);
    if (at === -1 || at + part.length > end) return false;
    from = at + part.length;
  }
  return true;
}
