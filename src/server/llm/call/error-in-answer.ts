import { AppError } from '../../../core/errors.ts';
import { jsonIn } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { HeaderList } from '../../kernel/request/header-list.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import type { UpstreamBody } from '../../transport/upstream/upstream-body.ts';
import { isBlank, isEmpty } from '../chat/event-data.ts';
import { errorInChoices, statusOfError } from '../chat/provider-error.ts';
import { errorOf } from '../errors.ts';
import { formats } from '../formats/index.ts';
import { membersOf } from '../json-members.ts';
import type { LlmCall } from '../llm-call.ts';
import type { ProviderFormat } from '../providers/provider.ts';
import { withoutMark } from './response-meter.ts';

interface ProviderReply {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: UpstreamBody;
}

/**
 * A provider's reply with the status that its error should have had: OpenRouter answers 200 with `{"error": {"code": 429, …}}` if the
 * provider behind it fails (maximhq/bifrost#4911), and clients read an answer without choices. An answer that says itself that it
 * failed, such as a response of `/v1/responses` or a choice with `finish_reason: "error"`, keeps its
 * status, but `call` has its error.
 */
export async function withStatusOfError(
  ctx: RequestContext,
  call: LlmCall,
  type: ProviderFormat['type'] | undefined,
  reply: ProviderReply,
): Promise<ProviderReply> {
  const shape = formats.find(({ key }) => key === type)?.shape;
  const { status, headers, body } = reply;
  const isJson = /\bjson\b/i.test(headers.get('content-type') ?? 'json');
  const isWhole = isJson || !(call.streaming || shape?.mayBeText === true);
  const isStream = headers.get('content-type')?.toLowerCase().startsWith('text/event-stream') === true;
  if (shape === undefined || call.isUnmetered === true || isStream || !isWhole) return reply;
  if (status < 200 || status > 299) return reply;
  call.progress = 'responding';
  const { bytes, isComplete } = await heldAnswer(ctx, body, LIMITS.checkedAnswerBytes);
  if (!isComplete || !ERROR.test(bytes.toString('latin1'))) return reply;
  const value = membersOf(jsonIn(withoutMark(bytes).toString('utf8')));
  if (value === undefined) return reply;
  const error = isEmpty(value['error']) ? errorInChoices(value) : value['error'];
  if (isEmpty(error)) return reply;
  // Members without content do not make an answer of it: `{"error": {…}, "choices": []}`.
  const rest = Object.fromEntries(Object.entries(value).filter(([, member]) => !isBlank(member)));
  if (!shape.isAnswer(rest)) return { ...reply, status: statusOfError(value) ?? 502 };
  if (call.isRetrieval !== true) call.providerError = errorOf(error);
  return reply;
}

/**
 * An `error` with a value, of which `null` is the usual one in responses of `/v1/responses`, or an "error" that is a value itself, as in
 * `finish_reason`. In a text, the quotes would be escaped.
 */
const ERROR = /"error"\s*:\s*[^\sn]|:\s*"error"/;

/** The beginning of a body, up to `limit` bytes, and whether it is all of it. Throws an `AppError` if it breaks off. */
export function heldAnswer(
  ctx: RequestContext,
  body: UpstreamBody,
  limit: number,
): ReturnType<UpstreamBody['hold']> {
  return body.hold(limit).catch((error: unknown) => {
    throw withEndpoint(ctx, error);
  });
}

/** The failure of a body, with the provider's address for the log unless the client has ended the call. */
function withEndpoint({ endpoint, isAbandoned }: RequestContext, error: unknown): unknown {
  if (isAbandoned || !(error instanceof AppError)) return error;
  const { code, message } = error;
  return new AppError(code, {
    message,
    detail: `${endpoint}: ${message.replace(/^upstream call failed: /, '')}`,
  });
}
