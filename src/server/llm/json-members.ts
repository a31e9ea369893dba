export type Members = Readonly<Record<string, unknown>>;

/** The members of a parsed JSON value; undefined unless it is an object or array. */
export function membersOf(value: unknown): Members | undefined {
  return typeof value === 'object' && value !== null ? (value as Members) : undefined;
}

/** Parses JSON; undefined if the text is invalid. For provider responses, which may contain anything. */
export function parseOrNothing(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
