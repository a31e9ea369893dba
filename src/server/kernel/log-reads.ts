import { Slot } from './slot.ts';

/**
 * Whether an expression of the access log, the metrics or the spans may read one of these dotted paths, such as
 * `request.body`. Features record payloads for the log only if one does.
 */
export const logReads = new Slot<{ reads(...paths: readonly string[]): boolean }>();
