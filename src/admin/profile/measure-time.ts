import { setTimeout } from 'node:timers/promises';

/** Duration of a profile, and a signal that ends it early. */
export interface MeasureTime {
  readonly seconds: number;
  /** Ends the measurement early; its samples are lost. */
  readonly signal: AbortSignal;
}

/** Resolves when the time is over, or immediately when the signal is aborted. */
export async function measured({ seconds, signal }: MeasureTime): Promise<void> {
  await setTimeout(seconds * 1000, undefined, { signal }).catch(() => undefined);
}
