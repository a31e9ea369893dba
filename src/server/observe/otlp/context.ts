import { randomBytes } from 'node:crypto';

/** Where a request stands in a trace of others. */
export interface TraceContext {
  readonly traceId: string;
  readonly spanId: string;
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/;

/** Reads `traceparent` as W3C Trace Context §3.2 says; undefined when there is not exactly one, or it is not valid. */
export function parseTraceparent(values: readonly string[]): TraceContext | undefined {
  const match = values.length === 1 ? TRACEPARENT.exec((values[0] as string).trim()) : null;
  if (match === null) return undefined;
  const [, version, traceId = '', spanId = '', rest] = match;
  if (version === 'ff' || (version === '00' && rest !== undefined)) return undefined;
  return /^0+$/.test(traceId) || /^0+$/.test(spanId) ? undefined : { traceId, spanId };
}

/** The header of a call that belongs to a sampled span. */
export const traceparent = ({ traceId, spanId }: TraceContext): string => `00-${traceId}-${spanId}-01`;

export const newTraceId = (): string => randomBytes(16).toString('hex');
export const newSpanId = (): string => randomBytes(8).toString('hex');
