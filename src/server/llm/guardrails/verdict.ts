import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import { LIMITS } from '../../../core/limits.ts';
import { members } from '../../kernel/json-text.ts';

export type Phase = 'request' | 'response';

/** What a guardrail says of a text. */
export type Verdict =
  | { readonly kind: 'pass' }
  | { readonly kind: 'mask'; readonly items: readonly unknown[] }
  | { readonly kind: 'reject'; readonly status: number; readonly body: string };

/** The webhook could not be asked, or did not answer as agreed, and the configuration says that nothing passes then. */
export class GuardrailFailure extends Error {}

/** Where a phase has its texts, in what a webhook gets and in a mask. */
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
 * Reads a verdict. Verdicts have no tag and are told apart by their members, so whatever is none of the three exactly is
 * a failure: a misspelt rejection must not pass. Throws `GuardrailFailure`.
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
  throw new GuardrailFailure('the `action` of the webhook is neither pass, mask nor reject');
}

function actionOf(bytes: Buffer): object {
  const text = isUtf8(bytes) ? bytes.toString('utf8') : '';
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new GuardrailFailure('the webhook did not answer with JSON');
  }
  if (!isObject(value) || !isObject(value['action']))
    throw new GuardrailFailure('the answer of the webhook has no `action` object');
  if (Object.keys(value).length > 1)
    throw new GuardrailFailure('the answer of the webhook has more than an `action`');
  const outer = members(text);
  const inner = members(text, outer[0]?.[1].start);
  // Of two equal members the last is in the value, so that there are fewer: which one was meant is anybody's guess.
  if (outer.length !== 1 || inner.length !== Object.keys(value['action']).length)
    throw new GuardrailFailure('the answer of the webhook has a member twice');
  return value['action'];
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
