/** What a profile covers, and what ends it early. */
export interface MeasureTime {
  readonly seconds: number;
  /** Ends the measurement early; what was measured until then is lost. */
  readonly signal: AbortSignal;
}

/** Resolves when the time is over, or at once when the signal is aborted. */
export function measured({ seconds, signal }: MeasureTime): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, seconds * 1000);
    function done(): void {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    }
    signal.addEventListener('abort', done);
    if (signal.aborted) done();
  });
}
