import type { Reasoning } from './chat.ts';

/** From little to much reasoning. */
export const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;

export type Effort = (typeof EFFORTS)[number];

/**
 * The token budget for each reasoning effort. No provider documents these numbers. 1024 is the smallest budget of the
 * Messages API, and 16k what its documentation recommends for complex tasks; the others are steps between and above them.
 */
const BUDGETS: Readonly<Record<Exclude<Effort, 'none'>, number>> = {
  minimal: 1024,
  low: 1024,
  medium: 4096,
  high: 16_384,
  xhigh: 32_768,
  max: 65_536,
};

/** The budget of tokens for an effort. Undefined: no wish, or no reasoning. */
export function budgetOf({ effort, budgetTokens }: Reasoning): number | undefined {
  if (budgetTokens !== undefined) return budgetTokens;
  return effort === undefined || effort === 'none' ? undefined : BUDGETS[effort];
}

/** The effort for a budget: the largest of low, medium and high whose budget is not larger. */
export function effortOf({ effort, budgetTokens }: Reasoning): Effort | undefined {
  if (effort !== undefined || budgetTokens === undefined) return effort;
  if (budgetTokens === 0) return 'none';
  if (budgetTokens >= BUDGETS.high) return 'high';
  return budgetTokens >= BUDGETS.medium ? 'medium' : 'low';
}
