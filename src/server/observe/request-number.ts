import type { Exchange } from '../kernel/request-context.ts';

let requests = 0;

/** The number of a request in the log, counted from the first one that was logged with it. */
export function numberOf(x: Exchange): number {
  x.number ??= ++requests;
  return x.number;
}
