/** Whether a pattern (exact, `*`, `prefix*` or `*suffix`) matches a model name. */
export function matchesModel(pattern: string, name: string): boolean {
  if (pattern.endsWith('*')) return name.startsWith(pattern.slice(0, -1));
  if (pattern.startsWith('*')) return name.endsWith(pattern.slice(1));
  return pattern === name;
}

/** What is wrong with a pattern, or undefined. */
export function patternProblem(pattern: string): string | undefined {
  const stars = pattern.split('*').length - 1;
  if (stars > 1) return `model name wildcard may only appear once: \`${pattern}\``;
  if (stars === 1 && !pattern.startsWith('*') && !pattern.endsWith('*')) {
    return `model name wildcard must be either at the beginning or the end: \`${pattern}\``;
  }
  return undefined;
}

/** Models in the order in which they are tried: most characters besides the wildcard first, then as configured. */
export function bySpecificity<M extends { readonly name: string }>(models: readonly M[]): M[] {
  return models.toSorted((a, b) => weightOf(b.name) - weightOf(a.name));
}

/** How specific a pattern is: its characters besides the wildcard. */
export function weightOf(name: string): number {
  return name.replace('*', '').length;
}
