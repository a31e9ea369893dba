/** What `/api/usage` sums by. Days and hours are those of UTC. */
export const USAGE_GROUPS = [
  'key',
  'user',
  'group',
  'provider',
  'model',
  'target',
  'tool',
  'protocol',
  'day',
  'hour',
] as const;
export type UsageGroup = (typeof USAGE_GROUPS)[number];

/** The groups of a text such as `key,model`; or what is wrong with it. */
export function usageGroupsIn(text: string): readonly UsageGroup[] | string {
  const groups = new Set<UsageGroup>();
  for (const name of text.split(',')) {
    const group = USAGE_GROUPS.find((each) => each === name);
    if (group === undefined)
      return `by has the unknown value ${JSON.stringify(name)}: expected ${USAGE_GROUPS.join(', ')}, or several of them`;
    groups.add(group);
  }
  return [...groups];
}

/** Sums of recorded requests, in `/api/usage`. */
export interface UsageSums {
  readonly requests: number;
  readonly errors: number;
  /** Refused, by `isRefusal` of `outcome.ts`: not among the errors. */
  readonly refused: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedInputTokens: number;
  /** Decimal text. */
  readonly costUsd: string;
}
