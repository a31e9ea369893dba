import type { HeaderList } from '../../kernel/request/header-list.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import type { UpstreamBody } from '../../transport/upstream/upstream-body.ts';
import type { ChatError, ChatEvent, ChatResponse } from '../chat/chat.ts';
import { type Json, type ProviderChatFormat, Untranslatable } from '../chat/chat-format.ts';
import { restoreCalls } from '../chat/client-tools.ts';
import { isEmpty, objectOf } from '../chat/event-data.ts';
import { eventsOf, ResponseCollector } from '../chat/event-response.ts';
import { parseExactly } from '../chat/exact-json.ts';
import { statusOfError } from '../chat/provider-error.ts';
import { serverSentEvents } from '../chat/server-sent-events.ts';
import { collectBody } from '../collect-body.ts';
import { redactKey } from '../credentials.ts';
import { llmError } from '../errors.ts';
import type { LlmCall } from '../llm-call.ts';
import { largerUsage } from '../usage.ts';
import { CustomCallRestorer } from './custom-call-events.ts';
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
  headers.delete('content-length');
  const { mediaType } = provider.framing ?? serverSentEvents;
  const isSuccess = status >= 200 && status <= 299;
  const isStream = isSuccess && headers.get('content-type')?.toLowerCase().startsWith(mediaType) === true;
  if (isStream && request.stream) {
    headers.set('content-type', EVENT_STREAM);
    return { status, headers, body: streamBody(ctx, call, translation, body) };
  }
  const bytes = await collectBody(ctx, body, undefined);
  call.lastTokenAfter = performance.now() - ctx.timings.started;
  const result = read(ctx, translation, isStream, { status, bytes, keyEncodings });
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
  return { status, headers, body: write(ctx, translation, named(result.response, request)) };
}

/** Some formats do not repeat the name of the model. */
function named<T extends { readonly model: string }>(head: T, { model }: ChatTranslation['request']): T {
  return head.model === '' ? { ...head, model } : head;
}

function streamBody(
  ctx: RequestContext,
  call: LlmCall,
  { client, provider, request }: ChatTranslation,
  body: UpstreamBody,
): UpstreamBody {
  const restorer = new CustomCallRestorer(request);
  call.providerUsage = null;
  return new TranslatedBody(body, {
    splitter: (provider.framing ?? serverSentEvents).splitter(call.limits.streamFrameBytes),
    reader: provider.eventReader(),
    writer: client.eventWriter(request),
    pingAfter: call.limits.translatedStreamPing,
    change: (event) => {
      if ((event.type === 'start' || event.type === 'end') && event.usage !== undefined)
        call.providerUsage = largerUsage(call.providerUsage ?? undefined, event.usage) ?? null;
      return restorer.read(event.type === 'start' ? named(event, request) : event);
    },
    onFailure: (error) => {
      // What readers throw of a provider's data is an `Error`; others are mistakes of the gateway.
      if (error instanceof TypeError || error instanceof RangeError) ctx.internalError ??= error;
      const why = error instanceof Untranslatable ? `it has \`${error.message}\`` : String(error);
      ctx.error ??= UNTRANSLATABLE;
      ctx.errorDetail ??= `${ctx.endpoint}: ${why}`;
      ctx.reason = 'UpstreamFailure';
      return { type: 'error', error: { message: UNTRANSLATABLE, status: 502, code: 'upstream_failed' } };
    },
  }).body;
}

const UNTRANSLATABLE = "failed to process LLM response: it cannot be translated to the client's format";

/** Reads a complete reply. */
function read(
  ctx: RequestContext,
  { provider }: ChatTranslation,
  isStream: boolean,
  reply: { readonly status: number; readonly bytes: Buffer; readonly keyEncodings: readonly string[] },
): { readonly response: ChatResponse } | { readonly error: ChatError } {
  const { status, bytes, keyEncodings } = reply;
  try {
    if (isStream) return collectEvents(provider, bytes);
    const value = parseExactly(redactKey(bytes, keyEncodings).toString('utf8'));
    if (status < 200 || status > 299) return { error: provider.readError(value, status) };
    const body = objectOf(value) ?? invalid('it is not a JSON object');
    // A response of `/v1/responses` that failed.
    if (!isEmpty(body['error'])) return { error: failed(provider, body) };
    return { response: provider.readResponse(body) };
  } catch (error) {
    throw llmError('upstream_invalid', 'upstream_failed', UNTRANSLATABLE, detailOf(ctx, error));
  }
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
  bytes: Buffer,
): { readonly response: ChatResponse } | { readonly error: ChatError } {
  const splitter = (provider.framing ?? serverSentEvents).splitter(bytes.length);
  const reader = provider.eventReader();
  const events: ChatEvent[] = [...splitter.push(bytes), ...splitter.end()].flatMap(({ data, type }) =>
    reader.read(data, type),
  );
  events.push(...reader.end());
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
