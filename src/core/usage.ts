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
