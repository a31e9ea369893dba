import { setImmediate } from 'node:timers/promises';

/** Longest time that metrics take from requests at once, in ms: 300 models have 26,000 lines. */
const SLICE = 5;

/** Divides long work, so that requests get turns of the event loop between its slices. */
export class Slices {
  #started = performance.now();

  get isOver(): boolean {
    return performance.now() - this.#started >= SLICE;
  }

  /** Begins the next slice after the requests that wait. */
  async next(): Promise<void> {
    await setImmediate();
    this.#started = performance.now();
  }
}
