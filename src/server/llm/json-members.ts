export type Members = Readonly<Record<string, unknown>>;

/** The members of a value that came as JSON; undefined unless it is an object or a list. */
export function membersOf(value: unknown): Members | undefined {
  return typeof value === 'object' && value !== null ? (value as Members) : undefined;
}

/** The value of a JSON text; undefined for what is no JSON, which a provider may send as it likes. */
export function parseOrNothing(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
