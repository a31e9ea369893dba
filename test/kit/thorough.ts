import { env } from 'node:process';

/**
 * How often a test repeats what is random: `few` times in every run, as each run draws other values, or `many` times
 * where `AGCTL_THOROUGH` is set.
 */
export const repeats = (few: number, many: number): number =>
  env['AGCTL_THOROUGH'] === undefined ? few : many;
