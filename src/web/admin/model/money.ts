/** `$0`, `$0.000024`, `$12.30`: prices of single calls are fractions of a cent. */
export const dollars = (value: number): string =>
  value === 0 ? '$0' : `$${value >= 1 ? value.toFixed(2) : plain(value)}`;

/** Two significant digits without an exponent. */
const plain = (value: number): string => value.toFixed(Math.min(12, 1 - Math.floor(Math.log10(value))));
