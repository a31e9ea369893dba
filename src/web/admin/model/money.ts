/** `$0`, `$0.000024`, `$12.30`: prices of single calls are fractions of a cent. */
export const dollars = (value: number): string =>
  value === 0 ? '$0' : `$${value >= 1 ? value.toFixed(2) : plain(value)}`;

/** Values of an axis, all with the digits that their distance needs: none, or two and more. */
export function dollarAxis(values: readonly number[]): string[] {
  const distance = (values[1] ?? 1) - (values[0] ?? 0);
  let digits = 0;
  while (digits < 12 && Math.abs(distance - Number(distance.toFixed(digits))) > distance / 1000)
    digits = Math.max(2, digits + 1);
  return values.map((value) => `$${value.toFixed(digits)}`);
}

/** Two significant digits without an exponent. */
const plain = (value: number): string => value.toFixed(Math.min(12, 1 - Math.floor(Math.log10(value))));
