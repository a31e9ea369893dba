import { entryIn, isRecord, shownValue } from '../../core/foreign.ts';
import type { VariableResolver } from '../kernel/expression.ts';
import { HeadersView } from './cel/headers-view.ts';
import { parseTimestamp } from './cel/time.ts';

type Json = Readonly<Record<string, unknown>>;

/**
 * Resolves variables from a recorded request (`requestState` of a trace). Restores values that JSON cannot represent:
 * case-insensitive headers, timestamps, and bodies (base64) as bytes.
 */
export function sampleLookup(state: Json): VariableResolver {
  const request = message(state['request']);
  const response = message(state['response']);
  return (root) => {
    if (root === 'request') return request;
    if (root === 'response') return response;
    return Object.hasOwn(state, root) ? (state[root] ?? null) : null;
  };
}

function message(value: unknown): unknown {
  if (!isRecord(value)) return value ?? null;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, entryIn(READERS, name)?.(member) ?? member]),
  );
}

const READERS: Readonly<Record<string, (member: unknown) => unknown>> = {
  headers: (member) => (isRecord(member) ? new HeadersView(rawHeaders(member)) : undefined),
  startTime: time,
  endTime: time,
  body: bytes,
  bodyPrefix: bytes,
};

function rawHeaders(headers: Json): string[] {
  return Object.entries(headers).flatMap(([name, value]) =>
    [value].flat().flatMap((line) => [name, shownValue(line)]),
  );
}

function time(member: unknown): unknown {
  try {
    return typeof member === 'string' ? parseTimestamp(member) : undefined;
  } catch {
    return undefined;
  }
}

function bytes(member: unknown): unknown {
  return typeof member === 'string' ? new Uint8Array(Buffer.from(member, 'base64')) : undefined;
}
