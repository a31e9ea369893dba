import { elementsOf } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import { textReply } from '../../kernel/request/error-response.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import { tokensOf } from '../../kernel/token-estimate.ts';
import { clientFormatOf, formatOf } from '../formats/index.ts';
import { promptFields } from '../formats/text-fields.ts';
import type { LlmCall } from '../llm-call.ts';
import type { Model } from '../models/model.ts';
import type { CallBody } from '../request/call-body.ts';
import { largestNumber } from '../request/request-numbers.ts';
import { countMedia, textBytes } from '../texts.ts';
import type { Usage } from '../usage.ts';

/** Tokens of an image of medium size, at providers that publish it. */
const MEDIA_TOKENS = 1_000;

/** Tokens of a call whose provider reported none (docs/decisions/0005). */
export function estimateUsage({ request, hasNoText, outputBytes = 0, isUnread }: LlmCall): Usage {
  const output = hasNoText ? 0 : tokensOf(outputBytes);
  return { input: estimateInput(request), output: isUnread ? Math.min(output, mostOutput(request)) : output };
}

/** The most tokens of an answer of which nothing could be read: a long one has more bytes of images than of text. */
function mostOutput(request: LlmCall['request']): number {
  const body = { get: (field: string) => request[field] };
  const most = largestNumber(body, 'tokens') ?? LIMITS.unreadAnswerTokens;
  return most * Math.max(1, largestNumber(body, 'answers') ?? 1);
}

/** Definitions, in which the names of media are those of parameters. */
const TOOLS = 'tools';

/** Members whose texts count as input. */
const COUNTED = [...promptFields.flatMap(({ name, isUncounted }) => (isUncounted ? [] : name)), TOOLS];

/** Tokens of the texts and media of a request. */
export function estimateInput(request: LlmCall['request']): number {
  let bytes = 0;
  let media = 0;
  for (const name of COUNTED) {
    const part = request[name];
    if (part === undefined) continue;
    bytes += textBytes(part);
    if (name !== TOOLS) media += countMedia(part);
  }
  const { prompt, input } = request;
  return tokensOf(bytes) + media * MEDIA_TOKENS + countNumbers(prompt ?? input);
}

/** Counts the tokens of a prompt given as token numbers, in one or several lists. */
function countNumbers(value: unknown): number {
  return elementsOf(value)
    .flatMap((item) => (Array.isArray(item) ? elementsOf(item) : [item]))
    .filter((item) => typeof item === 'number').length;
}

/** Whether the gateway answers a call that counts tokens, because the provider has no such call. */
export function countsTokensItself(
  { format }: Pick<LlmCall, 'format'>,
  { provider, formats }: Model,
  nameAtProvider: string,
): boolean {
  const isForwarded =
    provider.answer !== undefined ||
    formats.some(({ type, supports }) => type === format && (supports?.(nameAtProvider) ?? true));
  return clientFormatOf(format)?.tokenCount !== undefined && !isForwarded;
}

/**
 * An estimate in the format of the client (docs/decisions/0005). Throws an `AppError` (400) without a list of messages
 * or contents.
 */
export function tokenCountResponse(ctx: RequestContext, { format }: LlmCall, body: CallBody): Reply {
  const { tokenCount } = formatOf(format);
  const count = estimateInput(tokenCount?.parts(body) ?? {});
  ctx.reason = 'DirectResponse';
  return textReply(200, JSON.stringify(tokenCount?.response(count)), 'application/json');
}
