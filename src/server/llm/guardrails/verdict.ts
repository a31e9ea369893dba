import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import { LIMITS } from '../../../core/limits.ts';
import { members } from '../../kernel/json-text.ts';

export type Phase = 'request' | 'response';

/** The decision of a guardrail. */
export type Verdict =
  | { readonly kind: 'pass' }
  | { readonly kind: 'mask'; readonly items: readonly unknown[] }
  | { readonly kind: 'reject'; readonly status: number; readonly body: string };

/** The webhook could not be reached or sent an invalid response. With `failClosed`, the request is rejected. */
export class GuardrailError extends Error {}

/** The member that holds the texts, in webhook requests and in masks. */
export const memberOf = (phase: Phase): 'messages' | 'choices' =>
  phase === 'request' ? 'messages' : 'choices';

const reason = z.string().nullish();
const items = z.array(z.unknown());

const passSchema = z.strictObject({ reason });
const rejectSchema = z.strictObject({ body: z.string(), status_code: z.int().min(400).max(599), reason });
const maskSchemas = {
  request: z.strictObject({ body: z.strictObject({ messages: items }), reason }),
  response: z.strictObject({ body: z.strictObject({ choices: items }), reason }),
};

/**
 * Parses a verdict. Verdicts have no tag and are distinguished by their members, so anything that does not match one of
 * the three exactly is an error: a misspelt rejection must not pass. Throws `GuardrailError`.
 */
export function parseVerdict(bytes: Buffer, phase: Phase): Verdict {
  const action = actionOf(bytes);
  if (passSchema.safeParse(action).success) return { kind: 'pass' };
  const { data: rejection } = rejectSchema.safeParse(action);
  if (rejection !== undefined)
    return {
      kind: 'reject',
      status: rejection.status_code,
      body: rejection.body.slice(0, LIMITS.guardrailRejection),
    };
  const { data: mask } = maskSchemas[phase].safeParse(action);
  if (mask !== undefined) return { kind: 'mask', items: Object.values(mask.body)[0] as unknown[] };
  throw new GuardrailError('the `action` of the webhook is neither pass, mask nor reject');
}

function actionOf(bytes: Buffer): object {
  const text = isUtf8(bytes) ? bytes.toString('utf8') : '';
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new GuardrailError('the webhook response is not JSON');
  }
  if (!isObject(value) || !isObject(value['action']))
    throw new GuardrailError('the webhook response has no `action` object');
  if (Object.keys(value).length > 1)
    throw new GuardrailError('the webhook response has members besides `action`');
  const outer = members(text);
  const inner = members(text, outer[0]?.[1].start);
  // `JSON.parse` keeps the last of duplicate members, so the counts differ. Which one was meant is unknown.
  if (outer.length !== 1 || inner.length !== Object.keys(value['action']).length)
    throw new GuardrailError('the webhook response has a duplicate member');
  return value['action'];
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
