import type { RequestContext } from '../kernel/request-context.ts';
import { Slot } from '../kernel/slot.ts';

const numbers = new Slot<number>();
let requests = 0;

/** The request's number in the log, counted from the first request that was logged with one. */
export function numberOf(ctx: RequestContext): number {
  return numbers.ensure(ctx, () => ++requests);
}

/** Whether log lines name the request by its number already. */
export function isNumbered(ctx: RequestContext): boolean {
  return numbers.get(ctx) !== undefined;
}
