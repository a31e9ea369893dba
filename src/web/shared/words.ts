/** Numbers and times as all pages write them, whatever the language of the browser. */

export const count = (value: number): string => value.toLocaleString('en');

export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

const TIME = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });

/** A time of the server (RFC 3339), in the reader's zone; something else stays as it is. */
export function time(text: string): string {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? text : TIME.format(date);
}

const CLOCK = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });

/** Time of day to the second, in the reader's zone. @param at ms since 1970 */
export const clock = (at: number): string => CLOCK.format(at);

/** From one time to another; what both have in common is said once. */
export function times(from: string, to: string): string {
  const [first, last] = [time(from), time(to)];
  if (first === last) return first;
  const isSameDay = new Date(from).toDateString() === new Date(to).toDateString();
  return `${first} – ${isSameDay ? CLOCK.format(new Date(to)) : last}`;
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
