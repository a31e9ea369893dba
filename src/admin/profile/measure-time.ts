import { setTimeout } from 'node:timers/promises';

/** What a profile covers, and what ends it early. */
export interface MeasureTime {
  readonly seconds: number;
  /** Ends the measurement early; what was measured until then is lost. */
  readonly signal: AbortSignal;
}

/** Resolves when the time is over, or at once when the signal is aborted. */
export async function measured({ seconds, signal }: MeasureTime): Promise<void> {
  await setTimeout(seconds * 1000, undefined, { signal }).catch(() => undefined);
}
