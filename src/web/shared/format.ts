// Formats numbers and times identically on all pages, whatever the language of the browser.

/** `12,345.678` */
export function count(value: number): string {
  const [whole = '', part] = String(Math.round(value * 1000) / 1000).split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return part === undefined ? grouped : `${grouped}.${part}`;
}

/** `950`, `12.5k`, `3.2M` */
export function compact(value: number): string {
  if (value >= 1e6) return `${count(Math.round(value / 1e4) / 100)}M`;
  return value >= 1e4 ? `${count(Math.round(value / 100) / 10)}k` : count(Math.round(value * 100) / 100);
}

export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const two = (value: number): string => String(value).padStart(2, '0');

// Implemented by hand, because the first page would otherwise wait for the browser's tables of all languages.

/** Time of day to the second, in the user's time zone. @param at ms since 1970 */
export function clock(at: number): string {
  const date = new Date(at);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** A time of the server (RFC 3339), in the user's time zone; any other text is unchanged. */
export function time(text: string): string {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) return text;
  return `${date.getDate()} ${MONTHS[date.getMonth()]} ${date.getFullYear()}, ${clock(date.getTime())}`;
}

const DAY = 86_400_000;

/** A period of a chart: days by their date in UTC, as the gateway counts them; shorter ones from time to time. */
export function periodName(from: number, to: number): string {
  if (to - from >= DAY) return new Date(from).toISOString().slice(0, 10);
  return `${clock(from)} – ${clock(to)}`;
}

/** A time range; the common part is written once. */
export function times(from: string, to: string): string {
  const [first, last] = [time(from), time(to)];
  if (first === last) return first;
  const isSameDay = new Date(from).toDateString() === new Date(to).toDateString();
  return `${first} – ${isSameDay ? clock(Date.parse(to)) : last}`;
}

/** @param ms in milliseconds */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1_000)} s`;
}

export function size(bytes: number): string {
  if (bytes < 1_024) return `${bytes}\u00a0B`;
  if (bytes < 1_048_576) return `${(bytes / 1_024).toFixed(1)}\u00a0KiB`;
  return `${(bytes / 1_048_576).toFixed(1)}\u00a0MiB`;
}
