import { z } from 'zod';
import type { CallSpan } from '../observer.ts';
import {
  type HeaderList,
  isHeaderName,
  isHeaderValue,
  isSettableHeader,
  SETTABLE_HEADER,
} from './header-list.ts';

// These determine the length of a message and its recipient, so a configuration must not change them.
const FRAMING = new Set(['connection', 'content-length', 'host', 'transfer-encoding']);

const name = z
  .string()
  .refine(isHeaderName, { error: 'expected a header name' })
  .refine((header) => !FRAMING.has(header.toLowerCase()), {
    error: 'expected a header other than connection, content-length, host and transfer-encoding',
  });
const values = z.record(
  z
    .string()
    .refine(isHeaderName, { error: 'expected a header name', abort: true })
    .refine(isSettableHeader, { error: SETTABLE_HEADER }),
  z.string().refine(isHeaderValue, { error: 'expected a header value: no control characters' }),
);

/** Literal header changes, used by policies and LLM models. */
export const headerChangesSchema = z.strictObject({
  add: values.default({}).describe('Headers to add; existing headers of the same name are kept.'),
  set: values.default({}).describe('Headers to set; existing headers of the same name are replaced.'),
  remove: z.array(name).default([]).describe('Headers to remove, after `add` and `set`.'),
});

export type HeaderChanges = z.output<typeof headerChangesSchema>;

/** Returns a function that applies the changes to a header list: `set`, then `add`, then `remove`. */
export function headerChanges({ add, set, remove }: HeaderChanges): (headers: HeaderList) => void {
  const added = Object.entries(add);
  const replaced = Object.entries(set);
  return (headers) => {
    for (const [header, value] of replaced) headers.set(header, value);
    for (const [header, value] of added) headers.append(header, value);
    for (const header of remove) headers.delete(header);
  };
}

/** A copy of header lines with the client's `traceparent` replaced by that of the call. */
export function withTraceparent(headers: readonly string[], span: CallSpan): string[] {
  const kept: string[] = [];
  for (let at = 0; at < headers.length; at += 2) {
    if ((headers[at] ?? '').toLowerCase() !== 'traceparent')
      kept.push(headers[at] ?? '', headers[at + 1] ?? '');
  }
  kept.push('traceparent', span.traceparent);
  return kept;
}
