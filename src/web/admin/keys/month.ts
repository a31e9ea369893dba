/** A month of UTC, in ms since 1970. */
export interface Month {
  /** `November 2026` */
  readonly name: string;
  readonly from: number;
  /** Now, rounded up to the next hour: sums are kept by the hour. */
  readonly to: number;
  /** The start of the next month. */
  readonly end: number;
  readonly now: number;
}

const NAMES = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
];
const HOUR = 3_600_000;
/** After this part of a month, its rate says something of the rest, in ms. */
const FIRST = 24 * HOUR;

export function monthOf(now: number): Month {
  const date = new Date(now);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  return {
    name: `${NAMES[month]} ${year}`,
    from: Date.UTC(year, month),
    to: Math.ceil((now + 1) / HOUR) * HOUR,
    end: Date.UTC(year, month + 1),
    now,
  };
}

/** What the whole month costs if it goes on as it has; undefined in its first day. */
export function projected(cost: number, { from, end, now }: Month): number | undefined {
  const elapsed = now - from;
  return elapsed < FIRST ? undefined : (cost * (end - from)) / elapsed;
}
