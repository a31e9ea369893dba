export type Members = Readonly<Record<string, unknown>>;

/** The members of a parsed JSON value; undefined unless it is an object or array. */
export function membersOf(value: unknown): Members | undefined {
  return isMembers(value) ? value : undefined;
}

const isMembers = (value: unknown): value is Members => typeof value === 'object' && value !== null;
