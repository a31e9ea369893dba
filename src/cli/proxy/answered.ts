import { isRecord, jsonIn, membersOf } from '../../core/foreign.ts';
import { structureOf } from '../../core/json-members.ts';
import { LIMITS } from '../../core/limits.ts';
import type { AdminAddress } from './address.ts';
import { notAnAdmin } from './admin-client.ts';

/**
 * Parses JSON that a gateway has sent or a user has saved; undefined for anything else. What nests deeper than
 * `LIMITS.receivedDepth` counts as something else: functions that print it would exceed the stack.
 */
export function receivedJson(text: string): unknown {
  const most = LIMITS.receivedDepth;
  return structureOf(text, most, Number.POSITIVE_INFINITY).depth > most ? undefined : jsonIn(text);
}

/** The members of an endpoint's answer. @throws CommandError if it has none: another server listens there */
export function answered(
  { shown }: AdminAddress,
  text: string,
  path: string,
): Readonly<Record<string, unknown>> {
  const value = receivedJson(text);
  if (isRecord(value)) return value;
  throw notAnAdmin(shown, `its ${path} is not a JSON object`);
}

/** A virtual key as an endpoint sends it: `ShownKey`, of which only these members are relied upon. */
type AnsweredKey = Readonly<Record<string, unknown>> & { readonly name: string; readonly id: string };

/** The virtual key in an answer. @throws CommandError if there is none */
export function answeredKey(
  { shown }: AdminAddress,
  answer: Readonly<Record<string, unknown>>,
  path: string,
): AnsweredKey {
  const key = membersOf(answer['key']);
  const { name, id } = key;
  if (typeof name === 'string' && typeof id === 'string') return { ...key, name, id };
  throw notAnAdmin(shown, `its ${path} answers without a key`);
}
