/** Whether something is so: `depends` if only a request shows it. */
export type Answer = 'yes' | 'no' | 'depends';

/** An answer with its reason: the rule or policy that decides, or on which it depends. */
export interface Judgment {
  readonly answer: Answer;
  readonly because: string;
}

/** What policies make of one caller of a tool. */
export interface JudgedCaller {
  readonly kind: 'anonymous' | 'key' | 'claims';
  /** Name of the key; empty for others. */
  readonly name: string;
  /** Whether it may call the tool. */
  readonly calls: Judgment;
  /** Whether its lists have the tool. */
  readonly lists: Judgment;
}

/** The response of `/api/mcp/callers`. */
export interface ToolCallers {
  /** Without credentials first, then with the given claims, then those with a known key. */
  readonly callers: readonly JudgedCaller[];
  /** Keys that were not judged, because there are too many or the time was over. */
  readonly omitted: number;
  /** Why keys are missing, if they cannot be read. */
  readonly problem?: string;
}
