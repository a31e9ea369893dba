import { LIMITS } from '../../core/limits.ts';

/** How long and how often to measure. A parameter that is no whole number in its range counts as absent (upstream). */
export function cpuParameters(
  seconds: string | undefined,
  frequency: string | undefined,
): { readonly seconds: number; readonly frequency: number } {
  return {
    seconds: profileSeconds(seconds),
    frequency: inRange(frequency, LIMITS.profileFrequency),
  };
}

/** How long to measure, in seconds, for both kinds of profile. */
export function profileSeconds(text: string | undefined): number {
  return inRange(text, LIMITS.profileSeconds);
}

interface Range {
  readonly min: number;
  readonly max: number;
  readonly default: number;
}

function inRange(text: string | undefined, { min, max, default: otherwise }: Range): number {
  const value = /^\+?\d{1,9}$/.test(text ?? '') ? Number(text) : Number.NaN;
  return value >= min && value <= max ? value : otherwise;
}
