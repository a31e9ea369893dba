/** Whether a pattern (exact, `*`, `prefix*` or `*suffix`) matches a model name. */
export function matchesModel(pattern: string, name: string): boolean {
  if (pattern.endsWith('*')) return name.startsWith(pattern.slice(0, -1));
  if (pattern.startsWith('*')) return name.endsWith(pattern.slice(1));
  return pattern === name;
}

/** The error message for an invalid pattern; undefined for a valid one. */
export function patternProblem(pattern: string): string | undefined {
  const stars = pattern.split('*').length - 1;
  if (stars > 1) return `model name wildcard may only appear once: \`${pattern}\``;
  if (stars === 1 && !pattern.startsWith('*') && !pattern.endsWith('*')) {
    return `model name wildcard must be either at the beginning or the end: \`${pattern}\``;
  }
  return undefined;
}

/** Sorts models by descending specificity; ties keep the configured order. */
export function bySpecificity<M extends { readonly name: string }>(models: readonly M[]): M[] {
  return models.toSorted((a, b) => specificityOf(b.name) - specificityOf(a.name));
}

/** The specificity of a pattern: the number of its characters besides the wildcard. */
export function specificityOf(name: string): number {
  return name.replace('*', '').length;
}
