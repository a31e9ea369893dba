/** Windows of budgets. They begin at full hours, days, weeks (Monday) and months in UTC; `total` never ends. */
const BUDGET_WINDOWS = ['hour', 'day', 'week', 'month', 'total'] as const;
export type BudgetWindow = (typeof BUDGET_WINDOWS)[number];

/** What a budget counts. */
export type BudgetUnit = 'usd' | 'tokens';

export const isBudgetUnit = (value: unknown): value is BudgetUnit => value === 'usd' || value === 'tokens';
export const isBudgetWindow = (value: unknown): value is BudgetWindow =>
  BUDGET_WINDOWS.some((window) => window === value);

/** An amount per window: whole tokens, or money in 10^-9 USD, in which sums stay exact. */
export interface BudgetLimit {
  readonly unit: BudgetUnit;
  readonly amount: number;
  readonly window: BudgetWindow;
}

/** What `parseBudget` accepts, for error messages. */
export const BUDGET_FORMS =
  'expected an amount per window, such as `10USD/day` or `500000tokens/month`; windows: hour, day, week, month, total';

const NANO_DECIMALS = 9;
/** Sums of what many budgets have spent stay far below 2^53 of 10^-9 USD (9 million USD). */
const MAX_USD = 1_000_000;
/** 10^12 tokens: more than any provider sells to one customer in a month. */
const MAX_TOKENS = 1e12;

const BUDGET = /^(\d{1,13})(?:\.(\d{1,6}))?\s*(usd|tokens?)\s*\/\s*(hour|day|week|month|total)$/i;

/** Parses a budget such as `10USD/day`. Undefined if it is not valid. */
export function parseBudget(text: string): BudgetLimit | undefined {
  const [, whole, fraction = '', unit, window] = BUDGET.exec(text.trim()) ?? [];
  if (whole === undefined || unit === undefined) return undefined;
  const found = window?.toLowerCase();
  if (!isBudgetWindow(found)) return undefined;
  if (unit.toLowerCase() !== 'usd') {
    const amount = Number(whole);
    if (fraction !== '' || amount < 1 || amount > MAX_TOKENS) return undefined;
    return { unit: 'tokens', amount, window: found };
  }
  if (Number(whole) > MAX_USD) return undefined;
  const amount = Number(whole + fraction.padEnd(NANO_DECIMALS, '0'));
  return amount < 1 ? undefined : { unit: 'usd', amount, window: found };
}

/** An amount for people: `0.25 USD`, `1200 tokens`. */
export function amountText(unit: BudgetUnit, amount: number): string {
  return unit === 'tokens' ? `${amount} tokens` : `${usdText(amount)} USD`;
}

/** 10^-9 USD as decimal text in USD. */
export function usdText(amount: number): string {
  const digits = String(Math.abs(amount)).padStart(NANO_DECIMALS + 1, '0');
  const fraction = digits.slice(-NANO_DECIMALS).replace(/0+$/, '');
  const whole = `${amount < 0 ? '-' : ''}${digits.slice(0, -NANO_DECIMALS)}`;
  return fraction === '' ? whole : `${whole}.${fraction}`;
}

/** The text that `parseBudget` reads. */
export function budgetText({ unit, amount, window }: BudgetLimit): string {
  return unit === 'tokens' ? `${amount}tokens/${window}` : `${usdText(amount)}USD/${window}`;
}

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** Unix time in ms at which the window that contains `now` began; 0 for `total`. */
export function windowStart(window: BudgetWindow, now: number): number {
  switch (window) {
    case 'hour':
      return now - (now % HOUR);
    case 'day':
      return now - (now % DAY);
    case 'week': {
      // 1970-01-01 was a Thursday, so Mondays are four days later.
      const sinceMonday = (now - 4 * DAY) % (7 * DAY);
      return now - sinceMonday;
    }
    case 'month': {
      const date = new Date(now);
      return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
    }
    case 'total':
      return 0;
  }
}

/** Unix time in ms at which a window that began at `start` ends; undefined for `total`. */
export function windowEnd(window: BudgetWindow, start: number): number | undefined {
  switch (window) {
    case 'hour':
      return start + HOUR;
    case 'day':
      return start + DAY;
    case 'week':
      return start + 7 * DAY;
    case 'month': {
      const date = new Date(start);
      return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
    }
    case 'total':
      return undefined;
  }
}
