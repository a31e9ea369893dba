import { z } from 'zod';
import {
  isHeaderName,
  isHeaderValue,
  isSettableHeader,
  SETTABLE_HEADER,
} from '../kernel/request/header-list.ts';

/** Schema of `set` and `add`: expressions by header name, or by one of these pseudo-headers. */
export const computedHeadersSchema = (pseudo: readonly string[] = []) =>
  z
    .record(
      z.string().refine((name) => isSettable(name, pseudo), {
        error: [SETTABLE_HEADER, ...pseudo.map((name) => `\`${name}\``)].join(', or '),
      }),
      z.string().min(1),
    )
    .default({});

/** In HTTP/2, `Host` is `:authority`. */
function isSettable(name: string, pseudo: readonly string[]): boolean {
  return isSettableHeader(name) || pseudo.includes(name) || isHost(name, pseudo);
}

const isHost = (name: string, pseudo: readonly string[]): boolean =>
  name.toLowerCase() === 'host' && pseudo.includes(':authority');

export const removedHeadersSchema = z
  .array(
    z.string().refine((name) => isHeaderName(name) && isSettableHeader(name), { error: SETTABLE_HEADER }),
  )
  .default([]);

/** A value as text for a header; undefined if it cannot be one. */
export function headerText(value: unknown): string | undefined {
  const text =
    value instanceof Uint8Array
      ? Buffer.from(value).toString('latin1')
      : typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
        ? String(value)
        : undefined;
  return text !== undefined && isHeaderValue(text) ? text : undefined;
}
