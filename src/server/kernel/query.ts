/** A query (`?…` or empty) without the parameters of these names. The others keep the form in which they were sent. */
export function withoutParameters(query: string, names: ReadonlySet<string>): string {
  const kept = query
    .slice(1)
    .split('&')
    .filter((pair) => pair !== '' && ![...new URLSearchParams(pair).keys()].some((name) => names.has(name)));
  return kept.length === 0 ? '' : `?${kept.join('&')}`;
}
