/** What an entity, or a copy of its text, says of its origin. */
interface Origin {
  readonly path?: unknown;
  readonly source?: unknown;
  readonly line?: unknown;
  readonly anchor?: unknown;
}

/** `guide/setup.md:12#install`, as results cite it and `query_graph` takes it; undefined if it is not a document. */
export function placeOf({ path, source, line, anchor }: Origin): string | undefined {
  const origin = [path, source].find((one) => typeof one === 'string' && one !== '');
  if (typeof origin !== 'string') return undefined;
  const at = typeof path === 'string' && typeof line === 'number' ? `:${line}` : '';
  return `${origin}${at}${typeof anchor === 'string' ? `#${anchor}` : ''}`;
}
