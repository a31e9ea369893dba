import { textReply } from '../../kernel/error-response.ts';
import type { Reply, RequestContext } from '../../kernel/request-context.ts';
import type { LlmCall } from '../call.ts';
import { llmError } from '../errors.ts';
import type { FormatKey } from '../formats/format.ts';
import { type Members, membersOf } from '../json-members.ts';
import type { Model } from '../models/model.ts';
import type { CallBody } from '../request/call-body.ts';
import { countMedia, textBytes } from '../texts.ts';
import type { Usage } from '../usage.ts';

/** Four bytes of text are roughly one token in all languages that common tokenizers were made for. */
const BYTES_PER_TOKEN = 4;
/** Tokens of an image of medium size, at providers that publish it. */
const MEDIA_TOKENS = 1_000;

/** Tokens of a call whose provider reported none (docs/decisions/0005). */
export function estimateUsage({ request, hasNoText, outputBytes = 0 }: LlmCall): Usage {
  return {
    input: estimateInput(request),
    output: hasNoText ? 0 : Math.ceil(outputBytes / BYTES_PER_TOKEN),
  };
}

/** Tokens of the texts and media of a request. */
export function estimateInput(request: LlmCall['request']): number {
  const { messages, prompt, input, instructions, tools, system, query, documents } = request;
  const { contents, systemInstruction, system_instruction: snake, content, requests } = request;
  let bytes = 0;
  let media = 0;
  for (const part of [
    ...[messages, prompt, input, instructions, tools, system, query, documents],
    ...[contents, systemInstruction, snake, content, requests],
  ]) {
    if (part === undefined) continue;
    bytes += textBytes(part);
    media += countMedia(part);
  }
  return Math.ceil(bytes / BYTES_PER_TOKEN) + media * MEDIA_TOKENS + countNumbers(prompt ?? input);
}

/** Counts the tokens of a prompt given as token numbers, in one or several lists. */
function countNumbers(value: unknown): number {
  if (!Array.isArray(value)) return 0;
  return (value as unknown[])
    .flatMap((item) => (Array.isArray(item) ? (item as unknown[]) : [item]))
    .filter((item) => typeof item === 'number').length;
}

/** Calls that count the tokens of a request: its parts that are counted, and the response with the count. */
const COUNTS: Partial<
  Record<FormatKey, { parts(body: CallBody): Members; response(count: number): object }>
> = {
  anthropicTokenCount: {
    parts(body) {
      requireList('messages', body.get('messages'));
      return membersFrom(body, ['system', 'messages', 'tools']);
    },
    response: (count) => ({ input_tokens: count }),
  },
  // Gemini API, "countTokens": the contents, or a whole request in place of them.
  geminiCountTokens: {
    parts(body) {
      const whole = membersOf(body.get('generateContentRequest') ?? body.get('generate_content_request'));
      if (whole !== undefined) return whole;
      requireList('contents', body.get('contents'));
      return membersFrom(body, ['contents', 'systemInstruction', 'system_instruction', 'tools']);
    },
    response: (count) => ({ totalTokens: count }),
  },
};

function requireList(name: string, value: unknown): void {
  if (Array.isArray(value)) return;
  throw llmError('llm_invalid', 'missing_required_parameter', `${name}: a list is required`);
}

const membersFrom = (body: CallBody, fields: readonly string[]): Members =>
  Object.fromEntries(fields.map((field) => [field, body.get(field)]));

/** Whether the gateway answers a call that counts tokens, because the provider has no such call. */
export function countsTokensItself(
  { format }: Pick<LlmCall, 'format'>,
  { provider, formats }: Model,
  nameAtProvider: string,
): boolean {
  const isForwarded =
    provider.answer !== undefined ||
    formats.some(({ type, supports }) => type === format && (supports?.(nameAtProvider) ?? true));
  return format !== undefined && COUNTS[format] !== undefined && !isForwarded;
}

/**
 * An estimate in the format of the client (docs/decisions/0046). Throws an `AppError` (400) without a list of messages
 * or contents.
 */
export function tokenCountResponse(ctx: RequestContext, { format }: LlmCall, body: CallBody): Reply {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only called for formats that count tokens
  const { parts, response } = COUNTS[format ?? 'anthropicTokenCount'] as NonNullable<
    (typeof COUNTS)[FormatKey]
  >;
  const count = estimateInput(parts(body));
  ctx.reason = 'DirectResponse';
  return textReply(200, JSON.stringify(response(count)), 'application/json');
}
