import { z } from 'zod';
import { tryEvaluate } from '../expressions/cel/expression.ts';
import type { Expression, VariableResolver } from '../kernel/expression.ts';
import {
  FieldNames,
  type HeaderList,
  isHeaderName,
  isHeaderValue,
  isSettableHeader,
  SETTABLE_HEADER,
} from '../kernel/request/header-list.ts';

/** Names with a colon for parts of a message that are not headers (RFC 9113 §8.3). */
const PSEUDO_HEADERS = [':method', ':path', ':authority', ':status'] as const;
export type PseudoHeader = (typeof PSEUDO_HEADERS)[number];

/** Changes a part of the message. A value that is not valid for it is ignored. */
export type SetPseudoHeader = (name: PseudoHeader, value: string) => void;

/** Schema of `set` and `add`: expressions by header name, or by one of these pseudo-headers. */
export const computedHeadersSchema = (pseudo: readonly PseudoHeader[]) =>
  z
    .record(
      z.string().refine((name) => isSettable(name, pseudo), {
        error: `${SETTABLE_HEADER}, or ${pseudo.map((name) => `\`${name}\``).join(', ')}`,
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

export type ComputedHeaders = readonly (readonly [name: string, value: Expression])[];

/**
 * Evaluates each expression and applies its value. A header whose expression fails, or has a value that no header can
 * have, is removed, also by `add`: otherwise a client could send it itself.
 */
export function applyComputed(
  computed: ComputedHeaders,
  action: 'set' | 'append',
  headers: HeaderList,
  lookup: VariableResolver,
  setPseudo: SetPseudoHeader,
): void {
  for (const [name, expression] of computed) {
    const value = headerText(tryEvaluate(expression, lookup));
    if (name.startsWith(':') || name.toLowerCase() === 'host') {
      const pseudo = name.startsWith(':') ? PSEUDO_HEADERS.find((one) => one === name) : ':authority';
      if (pseudo !== undefined && value !== undefined) setPseudo(pseudo, value);
    } else if (value === undefined) headers.delete(name);
    else headers[action](name, value);
  }
}

/** Fields for the length and recipient of a message: not headers that an expression decides about. */
const KEPT = new FieldNames(['content-length', 'expect', 'host']);

/**
 * Replaces all headers by the members of a map: texts, numbers and booleans, or lists of these. Does nothing if the
 * expression fails or has no map. Names and values that no header can have are omitted.
 */
export function replaceHeaders(expression: Expression, headers: HeaderList, lookup: VariableResolver): void {
  const value = tryEvaluate(expression, lookup);
  if (value === null || typeof value !== 'object' || Array.isArray(value) || value instanceof Uint8Array)
    return;
  const { raw } = headers;
  const kept = raw.filter((_, index) => KEPT.has(raw[index - (index % 2)] ?? ''));
  raw.length = 0;
  raw.push(...kept);
  for (const [name, member] of Object.entries(value)) {
    if (!isSettableHeader(name)) continue;
    for (const line of [member].flat()) {
      const text = headerText(line);
      if (text !== undefined) headers.append(name, text);
    }
  }
}

/** A value as text for a header; undefined if it cannot be one. */
function headerText(value: unknown): string | undefined {
  const text =
    value instanceof Uint8Array
      ? Buffer.from(value).toString('latin1')
      : typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
        ? String(value)
        : undefined;
  return text !== undefined && isHeaderValue(text) ? text : undefined;
}
