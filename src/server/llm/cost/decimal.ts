/** Rates have at most six decimals (USD per million tokens), so a rate in millionths is a whole number. */
const RATE_DECIMALS = 6;
/** A rate in millionths of a USD per million tokens, times tokens, is a cost in 10^-12 USD. */
const COST_DECIMALS = 12;

/** Parses a decimal string such as `0.20` to a whole number of millionths. Undefined if it is not a valid rate. */
export function parseRate(text: string): bigint | undefined {
  const match = /^(\d{1,12})(?:\.(\d{1,6}))?$/.exec(text);
  if (match === null) return undefined;
  const [, whole = '', decimals = ''] = match;
  return BigInt(whole + decimals.padEnd(RATE_DECIMALS, '0'));
}

/**
 * Formats a number as a rate for `parseRate`, rounded to six decimals. `isExact` is false if that changed the value.
 * Undefined if the number is negative, not finite, or at least 10^12.
 */
export function roundedRate(value: number): { text: string; isExact: boolean } | undefined {
  if (!Number.isFinite(value) || value < 0 || value >= 1e12) return undefined;
  const text = value.toFixed(RATE_DECIMALS).replace(/\.?0+$/, '');
  return { text, isExact: Number(text) === value };
}

/** A rate as a number, for expressions. */
export function rateToNumber(rate: bigint): number {
  return Number(rate) / 10 ** RATE_DECIMALS;
}

/** Formats a cost in 10^-12 USD as a decimal string in USD, without exponent or trailing zeros. */
export function costToText(cost: bigint): string {
  const digits = cost.toString().padStart(COST_DECIMALS + 1, '0');
  const fraction = digits.slice(-COST_DECIMALS).replace(/0+$/, '');
  const whole = digits.slice(0, -COST_DECIMALS);
  return fraction === '' ? whole : `${whole}.${fraction}`;
}

/** Converts a cost in 10^-12 USD to a number in USD, for expressions. */
export function costToNumber(cost: bigint): number {
  return Number(costToText(cost));
}
