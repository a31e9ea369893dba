import { LIMITS } from '../../core/limits.ts';

/**
 * Duration and frequency of a CPU profile. A parameter that is not a whole number in its range counts as absent
 * (upstream).
 */
export function cpuParameters(
  seconds: string | undefined,
  frequency: string | undefined,
): { readonly seconds: number; readonly frequency: number } {
  return {
    seconds: profileSeconds(seconds),
    frequency: inRange(frequency, LIMITS.profileFrequency),
  };
}

/** Duration of a profile in seconds. */
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
