/** Digits after the point: a token of the cheapest models costs 10⁻⁸ USD, and 64 bits hold sums up to 900 million USD. */
const DIGITS = 10;

/** An amount in USD as decimal text, in 10⁻¹⁰ USD: an integer, so that sums are exact. At most 900,719 USD. */
export function costUnits(amount: string): number {
  const [whole = '0', fraction = ''] = amount.split('.');
  const digits = fraction.padEnd(DIGITS + 1, '0');
  const exact = BigInt(whole + digits.slice(0, DIGITS));
  const rounded = (digits[DIGITS] ?? '0') >= '5' ? exact + 1n : exact;
  const number = Number(rounded);
  return Math.min(number, Number.MAX_SAFE_INTEGER);
}

/** Converts 10⁻¹⁰ USD, an integer as text, to decimal text in USD. */
export function usdOf(units: string): string {
  const digits = BigInt(units)
    .toString()
    .padStart(DIGITS + 1, '0');
  const fraction = digits.slice(-DIGITS).replace(/0+$/, '');
  const whole = digits.slice(0, -DIGITS);
  return fraction === '' ? whole : `${whole}.${fraction}`;
}
