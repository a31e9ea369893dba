// Short forms of figures, for lines and columns that people read.

/** `7`, `999`, `12.3k`, `4.5M` */
export function compactCount(value: number): string {
  if (value < 1_000) return String(Math.round(value));
  const [divisor, unit] = UNITS.find(([least]) => value >= least * ROUNDS_UP) ?? [1_000, 'k'];
  const short = value / divisor;
  return `${short < 100 ? short.toFixed(1) : Math.round(short)}${unit}`;
}

const UNITS: readonly (readonly [number, string])[] = [
  [1_000_000_000, 'G'],
  [1_000_000, 'M'],
  [1_000, 'k'],
];
/** 999,950 is `1.0M`, not `1000k`. */
const ROUNDS_UP = 0.9995;

/** Requests per second: `<0.1`, `0.4`, `12`, `1.2k`. */
export function rateText(perSecond: number): string {
  if (perSecond === 0) return '0';
  if (perSecond < 0.05) return '<0.1';
  return perSecond < 9.95 ? perSecond.toFixed(1) : compactCount(perSecond);
}

/** US dollars: `$12.34`, `$0.0041`; tiny amounts with two significant digits. */
export function moneyText(dollars: number): string {
  if (dollars === 0) return '$0';
  if (dollars >= 0.995) return `$${dollars.toFixed(2)}`;
  const digits = Math.min(10, 1 - Math.floor(Math.log10(dollars)));
  return `$${dollars.toFixed(digits)}`;
}

/** `<1ms`, `12ms`, `1.2s`, `2m03s`, `3h05m`. @param ms in milliseconds */
export function tookText(ms: number): string {
  if (ms < 0.5) return '<1ms';
  if (ms < 999.5) return `${Math.round(ms)}ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)}s`;
  const seconds = Math.round(ms / 1_000);
  const [minutes, hours] = [Math.floor(seconds / 60), Math.floor(seconds / 3_600)];
  if (hours === 0) return `${minutes}m${two(seconds % 60)}s`;
  return hours < 48 ? `${hours}h${two(minutes % 60)}m` : `${Math.floor(hours / 24)}d${two(hours % 24)}h`;
}

/** Time of day in the zone of this machine, with the date if it is not that of `now`. Both in ms since 1970. */
export function clockText(at: number, now = at): string {
  const date = new Date(at);
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const isToday = date.toDateString() === new Date(now).toDateString();
  return isToday ? time : `${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}`;
}

const two = (value: number): string => String(value).padStart(2, '0');

/** Nearest-rank quantile of sorted values. */
export function quantile(sorted: readonly number[], part: number): number | undefined {
  return sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)];
}
