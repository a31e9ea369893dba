import type { SpanContext } from '@opentelemetry/api';
import { parseTraceParent } from '@opentelemetry/core';

/**
 * Reads `traceparent` as W3C Trace Context §3.2 says; undefined when there is not exactly one, or it is not valid.
 * The propagator of the library takes the first of several.
 */
export function parseTraceparent(values: readonly string[]): SpanContext | undefined {
  const parsed = values.length === 1 ? parseTraceParent((values[0] as string).trim()) : null;
  return parsed === null ? undefined : { ...parsed, isRemote: true };
}
