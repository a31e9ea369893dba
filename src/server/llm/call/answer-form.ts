import { isUtf8 } from 'node:buffer';
import { jsonIn } from '../../../core/foreign.ts';
import type { HeaderList } from '../../kernel/request/header-list.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import type { UpstreamBody } from '../../transport/upstream/upstream-body.ts';
import type { ChatRequest } from '../chat/chat.ts';
import { type ChatFormat, Untranslatable } from '../chat/chat-format.ts';
import { collectBody } from '../collect-body.ts';
import { LlmError } from '../errors.ts';
import { clientFormatOf, formats } from '../formats/index.ts';
import type { LlmCall } from '../llm-call.ts';
import type { ProviderFormat } from '../providers/provider.ts';
import { translateWhole, UNTRANSLATABLE } from '../translation/translated-reply.ts';
import { isWholeAnswer, NO_STREAM, UNASKED_STREAM, wrongShape } from './answer-shape.ts';
import { heldAnswer } from './error-in-answer.ts';
import { withoutMark } from './response-meter.ts';

// Servers and proxies answer a request for a stream with a whole response, and the reverse, and some name no content type or a wrong
// one. Official clients read an empty answer from that, without an error.

interface ProviderReply {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: UpstreamBody;
}

const EVENT_STREAM = 'text/event-stream';

/** Whether a reply is a stream of events, as its content type says. */
export const isEventStream = ({ headers }: { readonly headers: HeaderList }): boolean =>
  headers.get('content-type')?.toLowerCase().startsWith(EVENT_STREAM) === true;

/**
 * Gives a successful answer the content type of what it is, if it has none or that of any text, or if JSON is in place of a stream.
 * Waits for the first bytes of such an answer only.
 */
export async function correctContentType(
  ctx: RequestContext,
  call: LlmCall,
  type: ProviderFormat['type'] | undefined,
  { status, headers, body }: ProviderReply,
): Promise<void> {
  const shape = formats.find(({ key }) => key === type)?.shape;
  if (shape === undefined || call.isUnmetered === true || status < 200 || status > 299) return;
  if (shape.mayBeText === true && !call.streaming) return;
  const named = headers.get('content-type')?.trim() ?? '';
  const isUnclear = named === '' || /^text\/plain\b/i.test(named);
  if (!isUnclear && !(call.streaming && /\bjson\b/i.test(named))) return;
  const begin = await beginning(ctx, body);
  if (EVENT.test(begin)) headers.set('content-type', EVENT_STREAM);
  else if (isUnclear && /^[[{]/.test(begin)) headers.set('content-type', 'application/json');
}

/** HTML standard, "Server-sent events": the fields of an event, and comments. */
const EVENT = /^(?:data|event|id|retry|):/;
const LONGEST_FIELD = 'event:'.length;
/** White space before JSON or an event, in bytes; more of it is neither. */
const MOST_BLANK = 1024;

/** The first characters of a body behind white space, in Latin-1. */
async function beginning(ctx: RequestContext, body: UpstreamBody): Promise<string> {
  let size = 0;
  for (;;) {
    const { bytes, isComplete } = await heldAnswer(ctx, body, size);
    const text = withoutMark(bytes).toString('latin1', 0, MOST_BLANK).trimStart();
    if (isComplete || text.length >= LONGEST_FIELD || bytes.length >= MOST_BLANK) return text;
    size = bytes.length;
  }
}

/**
 * A reply in the form that the client has asked for: a whole chat becomes a stream, and a stream a whole chat, by a translation of its
 * format to itself. Throws an `AppError` (502) for one that cannot be read.
 */
export async function inAskedForm(
  ctx: RequestContext,
  call: LlmCall,
  reply: ProviderReply,
  keyEncodings: readonly string[],
): Promise<Reply> {
  const chat = clientFormatOf(call.format)?.chat;
  if (chat === undefined || call.isUnmetered === true || call.isRetrieval === true) return reply;
  if (reply.status < 200 || reply.status > 299 || isEventStream(reply) === call.streaming) return reply;
  const { status, headers, body } = reply;
  const bytes = await collectBody(ctx, body, undefined);
  const isStream = isEventStream(reply);
  const other = () => wrongShape(ctx, call, isStream ? UNASKED_STREAM : NO_STREAM);
  // Guardrails must not read another text than the client could.
  if (!isUtf8(bytes)) throw other();
  const translation = { kind: 'chat' as const, client: chat, provider: chat, request: requestOf(chat, call) };
  const whole = { status, headers, bytes, isStream };
  try {
    return translateWhole(ctx, call, translation, whole, keyEncodings);
  } catch (error) {
    const isUnreadable = error instanceof LlmError && error.message.startsWith(UNTRANSLATABLE);
    // An answer with something that has no neutral form says what it is, and counts.
    const isAnswer = !isStream && isWholeAnswer(call.format, jsonIn(withoutMark(bytes).toString('utf8')));
    throw isUnreadable && !isAnswer ? other() : error;
  }
}

/** The request of the client, as far as answers repeat it; of one with members that only its provider knows, nothing. */
function requestOf(
  chat: ChatFormat,
  { request, requestModel: model, streaming: stream }: LlmCall,
): ChatRequest {
  try {
    return chat.readRequest(request, { model, stream });
  } catch (error) {
    if (!(error instanceof Untranslatable)) throw error;
    return { model, system: [], turns: [], tools: [], stream, streamUsage: false };
  }
}
