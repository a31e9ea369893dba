import type { HeaderList } from '../../kernel/request/header-list.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import type { UpstreamBody } from '../../transport/upstream/upstream-body.ts';
import type { ChatError, ChatEvent, ChatResponse, ChatUsage } from '../chat/chat.ts';
import {
  type EventReader,
  type Json,
  type ProviderChatFormat,
  Unfinished,
  Untranslatable,
} from '../chat/chat-format.ts';
import { restoreCalls } from '../chat/client-tools.ts';
import { errorValue } from '../chat/error-body.ts';
import { isEmpty, objectOf } from '../chat/event-data.ts';
import { eventsOf, ResponseCollector } from '../chat/event-response.ts';
import { parseExactly } from '../chat/exact-json.ts';
import { newId } from '../chat/new-id.ts';
import { statusOfError } from '../chat/provider-error.ts';
import { serverSentEvents } from '../chat/server-sent-events.ts';
import { collectBody } from '../collect-body.ts';
import { rareEncodings, redactKey } from '../credentials.ts';
import { LlmError, llmError } from '../errors.ts';
import type { LlmCall } from '../llm-call.ts';
import { CustomCallRestorer } from './custom-call-events.ts';
import { EventOrder } from './event-order.ts';
import { TranslatedBody } from './translated-body.ts';
import type { ChatTranslation } from './translation.ts';

const EVENT_STREAM = 'text/event-stream';
const JSON_TYPE = 'application/json';

/**
 * Translates the provider's reply: a stream as it arrives, everything else once it is complete. A provider may answer a
 * request for a stream without one, and the reverse; the client gets what it asked for. Throws an `AppError` (502) for a
 * reply that is not valid or has content that the client's format cannot express.
 */
export async function translateReply(
  ctx: RequestContext,
  call: LlmCall,
  translation: ChatTranslation,
  reply: { readonly status: number; readonly headers: HeaderList; readonly body: UpstreamBody },
  keyEncodings: readonly string[],
): Promise<Reply> {
  const { status, headers, body } = reply;
  const { provider, request } = translation;
  const { mediaType } = provider.framing ?? serverSentEvents;
  const isSuccess = status >= 200 && status <= 299;
  const isStream = isSuccess && headers.get('content-type')?.toLowerCase().startsWith(mediaType) === true;
  if (isStream && request.stream) {
    headers.delete('content-length');
    headers.set('content-type', EVENT_STREAM);
    return { status, headers, body: streamBody(ctx, call, translation, body) };
  }
  const bytes = await collectBody(ctx, body, undefined);
  return translateWhole(ctx, call, translation, { status, headers, bytes, isStream }, keyEncodings);
}

/**
 * Translates a reply that has been received completely, as a stream (`isStream`) or not, to what the client has asked for. Throws like
 * `translateReply`.
 */
export function translateWhole(
  ctx: RequestContext,
  call: LlmCall,
  translation: ChatTranslation,
  reply: {
    readonly status: number;
    readonly headers: HeaderList;
    readonly bytes: Buffer;
    readonly isStream: boolean;
  },
  keyEncodings: readonly string[],
): Reply {
  const { status, headers, bytes, isStream } = reply;
  const { request } = translation;
  headers.delete('content-length');
  call.lastTokenAfter = performance.now() - ctx.timings.started;
  const result = read(ctx, call, translation, isStream, { status, bytes, keyEncodings });
  if ('error' in result) {
    headers.set('content-type', JSON_TYPE);
    const { retryAfter } = result.error;
    if (retryAfter !== undefined && !headers.has('retry-after'))
      headers.set('retry-after', String(retryAfter));
    const text = JSON.stringify(translation.client.writeError(result.error));
    return { status: result.error.status, headers, body: text };
  }
  call.providerUsage = result.response.usage ?? null;
  headers.set('content-type', request.stream ? EVENT_STREAM : JSON_TYPE);
  return { status, headers, body: write(ctx, translation, completed(result.response, request)) };
}

/** Some formats do not repeat the name of the model, and some servers leave out the id, which clients expect. */
function completed<T extends Pick<ChatResponse, 'id' | 'model'>>(
  head: T,
  { model }: ChatTranslation['request'],
): T {
  return { ...head, id: head.id || newId(), model: head.model || model };
}

function streamBody(
  ctx: RequestContext,
  call: LlmCall,
  { client, provider, request }: ChatTranslation,
  body: UpstreamBody,
): UpstreamBody {
  const restorer = new CustomCallRestorer(request);
  const reader = provider.eventReader();
  call.providerUsage = null;
  return new TranslatedBody(body, {
    splitter: (provider.framing ?? serverSentEvents).splitter(call.limits.streamFrameBytes),
    reader,
    writer: client.eventWriter(request),
    pingAfter: call.limits.translatedStreamPing,
    change: (event) => {
      call.providerUsage = reader.usage ?? null;
      return restorer.read(event.type === 'start' ? completed(event, request) : event);
    },
    onFailure: (error) => {
      // What readers throw of a provider's data is an `Error`; others are mistakes of the gateway.
      if (error instanceof TypeError || error instanceof RangeError) ctx.internalError ??= error;
      const why = error instanceof Untranslatable ? `it has \`${error.message}\`` : String(error);
      call.providerUsage = reader.usage ?? null;
      ctx.error ??= UNTRANSLATABLE;
      ctx.errorDetail ??= `${ctx.endpoint}: ${why}`;
      ctx.reason = 'UpstreamFailure';
      return { type: 'error', error: clientError(error) };
    },
  }).body;
}

const FAILED = 'failed to process LLM response';
/** How the message begins for an answer that cannot be translated. */
export const UNTRANSLATABLE = `${FAILED}: it cannot be translated to the client's format`;

/** Of a provider's names and sentences, in characters. */
const MOST_NAMED = 200;
const MOST_SAID = 1_000;

/** What the client reads of an answer that cannot be read. */
function clientError(error: unknown): ChatError {
  return { message: clientMessage(error), status: 502, code: 'upstream_failed' };
}

function clientMessage(error: unknown): string {
  if (!(error instanceof Untranslatable)) return UNTRANSLATABLE;
  const what = error.what.slice(0, MOST_NAMED);
  if (!(error instanceof Unfinished))
    return `${UNTRANSLATABLE}: it has \`${what}\`${error.why === undefined ? '' : `: ${error.why}`}`;
  const said = error.said === undefined ? '' : `: ${error.said.slice(0, MOST_SAID)}`;
  return `${FAILED}: ${String(error.why)} (${what})${said}`;
}

/** Reads a complete reply. */
function read(
  ctx: RequestContext,
  call: LlmCall,
  { provider }: ChatTranslation,
  isStream: boolean,
  reply: { readonly status: number; readonly bytes: Buffer; readonly keyEncodings: readonly string[] },
): { readonly response: ChatResponse } | { readonly error: ChatError } {
  const { status, bytes, keyEncodings } = reply;
  let used = (): ChatUsage | undefined => undefined;
  try {
    if (isStream) {
      const reader = provider.eventReader();
      used = () => reader.usage;
      return collectEvents(provider, reader, bytes);
    }
    const isError = status < 200 || status > 299;
    const redacted = redactKey(bytes, isError ? keyEncodings : rareEncodings(keyEncodings));
    const value = isError ? errorValue(redacted, status) : parseExactly(redacted.toString('utf8'));
    const body = objectOf(value) ?? (isError ? {} : invalid('it is not a JSON object'));
    used = () => provider.readUsage(body);
    // A response of `/v1/responses` that failed has a status of success.
    if (isError || !isEmpty(body['error'])) {
      call.providerUsage = used() ?? null;
      return { error: isError ? provider.readError(value, status) : failed(provider, body) };
    }
    return { response: provider.readResponse(body) };
  } catch (error) {
    // The provider charges for it.
    call.providerUsage = used() ?? null;
    return { error: unreadable(ctx, error) };
  }
}

/**
 * The error for an answer that cannot be read; throws it as an `AppError` (502) if only the gateway has words for it. Each try of the
 * client is paid for: it may bring another answer if the model failed, but has the same content otherwise.
 */
function unreadable(ctx: RequestContext, error: unknown): ChatError {
  // A reply, so that guardrails read what the provider says.
  if (error instanceof Unfinished) {
    ctx.errorDetail ??= detailOf(ctx, error);
    return clientError(error);
  }
  const headers = error instanceof Untranslatable ? ['x-should-retry', 'false'] : [];
  throw new LlmError('upstream_invalid', 'upstream_failed', {
    message: clientMessage(error),
    detail: detailOf(ctx, error),
    headers,
  });
}

function detailOf({ endpoint }: RequestContext, error: unknown): string {
  if (error instanceof Untranslatable) return `${endpoint}: the response has \`${error.message}\``;
  return `${endpoint}: ${error instanceof Error ? error.message : String(error)}`;
}

function invalid(why: string): never {
  throw new Error(`the response cannot be read: ${why}`);
}

/** An error in a reply whose status says success. */
function failed(provider: ProviderChatFormat, body: Json): ChatError {
  return provider.readError(body, statusOfError(body) ?? 502);
}

function collectEvents(
  provider: ProviderChatFormat,
  reader: EventReader,
  bytes: Buffer,
): { readonly response: ChatResponse } | { readonly error: ChatError } {
  const splitter = (provider.framing ?? serverSentEvents).splitter(bytes.length);
  const read: ChatEvent[] = [...splitter.push(bytes), ...splitter.end()].flatMap(({ data, type }) =>
    reader.read(data, type),
  );
  read.push(...reader.end());
  const order = new EventOrder();
  const events = read.flatMap((event) => [...order.completed(event)]);
  const collector = new ResponseCollector();
  for (const event of events) {
    if (event.type === 'error') return { error: event.error };
    collector.add(event);
    if (event.type === 'end') return { response: collector.response() };
  }
  return invalid('the stream has no last event');
}

/** The body for the client: the whole response, or all of its events. */
function write(ctx: RequestContext, { client, request }: ChatTranslation, response: ChatResponse): string {
  try {
    if (!request.stream)
      return JSON.stringify(client.writeResponse(restoreCalls(response, request), request));
    const restorer = new CustomCallRestorer(request);
    const writer = client.eventWriter(request);
    return [...eventsOf(response)]
      .flatMap((event) => restorer.read(event))
      .map((event) => writer.write(event))
      .join('');
  } catch (error) {
    throw llmError('upstream_invalid', 'upstream_failed', UNTRANSLATABLE, detailOf(ctx, error));
  }
}
