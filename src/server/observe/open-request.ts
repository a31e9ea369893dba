import type { RequestContext } from '../kernel/request/request-context.ts';
import { requestFields } from './request-fields.ts';

/** A request whose response has not ended. */
export interface OpenRequest {
  /** The same each time the request is listed; unique in its process. */
  readonly key: number;
  /** When it arrived, in ms since 1970. */
  readonly startedAt: number;
  /** The access-log fields that are known so far; the status once the response has begun. */
  readonly fields: Readonly<Record<string, unknown>>;
}

let count = 0;
const keys = new WeakMap<RequestContext, number>();

/** @param removed names of fields that the access log omits */
export function openRequest(ctx: RequestContext, removed: ReadonlySet<string>): OpenRequest {
  const key = keys.get(ctx) ?? ++count;
  keys.set(ctx, key);
  const status = ctx.reply?.status;
  const fields: Record<string, unknown> = {};
  for (const [name, value] of requestFields(ctx, status ?? 0))
    if (!removed.has(name) && name !== 'duration' && (name !== 'http.status' || status !== undefined))
      fields[name] = value;
  return { key, startedAt: ctx.timings.startedAt, fields };
}
