import type { AppError } from '../../../core/errors.ts';
import { elementsOf, isRecord } from '../../../core/foreign.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { isEmpty } from '../chat/event-data.ts';
import { llmError } from '../errors.ts';
import { clientFormatOf, type FormatKey, formats } from '../formats/index.ts';
import { type LlmCall, refuse } from '../llm-call.ts';

// A provider that is configured with a format it does not have answers in another one, or with anything: a proxy that
// returns chat chunks for /v1/responses, a page of a load balancer, JSON in place of a stream. A
// client that takes it for its own format reads an empty answer.

const shapes = [...new Set(formats.flatMap(({ shape }) => shape ?? []))];

export const NO_STREAM = 'the provider answered a request for a stream with a whole response';
export const UNASKED_STREAM = 'the provider answered with a stream, which the request did not ask for';

/** Whether answers of a format are checked. */
export const hasShape = (format: FormatKey | undefined): format is FormatKey =>
  clientFormatOf(format)?.shape !== undefined;

/** Whether a response of a format may be no JSON, as its content type says. */
export const mayBeText = (format: FormatKey | undefined): boolean =>
  clientFormatOf(format)?.shape?.mayBeText === true;

/** Whether a stream in place of a whole response is an error, and the reverse. */
export const isStrict = (format: FormatKey | undefined): boolean =>
  clientFormatOf(format)?.shape?.isStrict === true;

/** Whether an event of a stream says anything in the format: pings do not, errors do in every format. */
export const saysAnything = (format: FormatKey, value: Readonly<Record<string, unknown>>): boolean =>
  saysAnswer(format, value) || !isEmpty(value['error']) || value['type'] === 'error';

function saysAnswer(format: FormatKey, value: Readonly<Record<string, unknown>>): boolean {
  const shape = clientFormatOf(format)?.shape;
  return shape === undefined || (shape.isAnswerEvent ?? shape.isAnswer)(value);
}

/** Whether an event ends the stream: nothing of the answer is missing after it. */
export const endsStream = (
  format: FormatKey | undefined,
  value: Readonly<Record<string, unknown>>,
): boolean =>
  clientFormatOf(format)?.shape?.isLast?.(value) === true ||
  !isEmpty(value['error']) ||
  value['type'] === 'error';

/** Whether the end of a stream of this format can be told from one that was cut off. */
export const hasLastEvent = (format: FormatKey | undefined): boolean =>
  clientFormatOf(format)?.shape?.isLast !== undefined;

/** What is wrong with an event of a stream, or with an answer; undefined if it may be of the format. */
export function otherShape(format: FormatKey, value: Readonly<Record<string, unknown>>): string | undefined {
  const expected = clientFormatOf(format)?.shape;
  if (expected === undefined || expected.has(value)) return undefined;
  const shape = shapes.find((each) => each.has(value));
  return shape === undefined
    ? undefined
    : `the provider answered in the format of ${shape.api}, not of ${expected.api}`;
}

/** What is wrong with a whole answer; undefined if nothing is. An error is none in any format. */
export function wrongAnswer({ format, streaming }: LlmCall, value: unknown): string | undefined {
  if (!hasShape(format)) return undefined;
  if (value === undefined && mayBeText(format)) return undefined;
  if (Array.isArray(value) && clientFormatOf(format)?.shape?.isList?.(elementsOf(value)) === true)
    return undefined;
  if (!isRecord(value)) return 'the provider answered with something else than a JSON object';
  if (!isEmpty(value['error'])) return undefined;
  if (streaming && isStrict(format)) return NO_STREAM;
  return otherShape(format, value) ?? noShape(format, value);
}

/** Whether a value is a whole answer of a format. */
export const isWholeAnswer = (format: FormatKey | undefined, value: unknown): boolean =>
  hasShape(format) && isRecord(value) && (otherShape(format, value) ?? noShape(format, value)) === undefined;

const noShape = (format: FormatKey, value: Readonly<Record<string, unknown>>): string | undefined => {
  const expected = clientFormatOf(format)?.shape;
  return expected?.isAnswer(value) === false
    ? `the provider answered with something else than a response of ${expected.api}`
    : undefined;
};

/** Ends a call whose answer is of another shape than its format: nothing of it counts. */
export function wrongShape({ endpoint }: RequestContext, call: LlmCall, why: string): AppError {
  refuse(call);
  return llmError(
    'upstream_invalid',
    'upstream_failed',
    `upstream call failed: ${why}`,
    `${endpoint}: ${why}: check \`provider\` and \`baseUrl\` of the model`,
  );
}
