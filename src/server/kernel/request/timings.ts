/** Times of a request: in ms from `performance.now()`, or where it says so in Unix time in ms. */
export class Timings {
  /** Arrival, Unix time. */
  readonly startedAt = Date.now();
  readonly started = performance.now();
  /** When the response ended, Unix time. */
  endedAt: number | undefined;
  /** The backend was called. */
  called: number | undefined;
  /** The response headers of the backend arrived. */
  answered: number | undefined;
  /** The reply was ready. */
  replied: number | undefined;
  /** The response ended. */
  ended: number | undefined;

  /** Called when the response has ended. */
  end(): void {
    this.endedAt = Date.now();
    this.ended = performance.now();
  }

  /** Time from the arrival to the end of the response, or until now. */
  get duration(): number {
    return (this.ended ?? performance.now()) - this.started;
  }
}
