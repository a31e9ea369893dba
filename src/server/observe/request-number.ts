import type { RequestContext } from '../kernel/request-context.ts';
import { Slot } from '../kernel/slot.ts';

const numbers = new Slot<number>();
let requests = 0;

/** The request's number in the log, assigned on the first call and counting from 1. */
export function numberOf(ctx: RequestContext): number {
  return numbers.ensure(ctx, () => ++requests);
}

/** Whether the request already has a number, that is, whether log lines mention it. */
export function isNumbered(ctx: RequestContext): boolean {
  return numbers.get(ctx) !== undefined;
}
