import { z } from 'zod';

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const DURATION = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/;

/** A duration as text, such as `300ms`, `5m` or `1h30m`; the parsed value is in milliseconds. */
export const durationSchema = z
  .string()
  .regex(DURATION, { error: 'expected a duration such as `300ms`, `5m` or `1h30m`' })
  .transform(toMilliseconds)
  .meta({ examples: ['30s'] });

/** Formats milliseconds as such a duration, for defaults. */
export function durationText(milliseconds: number): string {
  const [unit, size] = Object.entries(UNITS).findLast(([, factor]) => milliseconds % factor === 0) ?? [
    'ms',
    1,
  ];
  return `${milliseconds / size}${unit}`;
}

function toMilliseconds(text: string): number {
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g))
    total += Number(amount) * (UNITS[unit ?? ''] ?? 0);
  return total;
}

/** Milliseconds as Go prints durations: `30m0s`, `1.5s`, `250ms`. */
export function goDuration(milliseconds: number): string {
  if (milliseconds === 0) return '0s';
  if (milliseconds < 1000) return `${milliseconds}ms`;
  const hours = Math.floor(milliseconds / 3_600_000);
  const minutes = Math.floor((milliseconds % 3_600_000) / 60_000);
  const seconds = (milliseconds % 60_000) / 1000;
  return `${hours > 0 ? `${hours}h` : ''}${hours > 0 || minutes > 0 ? `${minutes}m` : ''}${seconds}s`;
}
