import type { RequestContext } from '../kernel/request-context.ts';
import { Slot } from '../kernel/slot.ts';

const numbers = new Slot<number>();
let requests = 0;

/** The request's number in the log, counted from the first request that was logged with one. */
export function numberOf(x: RequestContext): number {
  return numbers.ensure(x, () => ++requests);
}

/** Whether log lines name the request by its number already. */
export function isNumbered(x: RequestContext): boolean {
  return numbers.get(x) !== undefined;
}
