import { AppError, messageOf } from '../../../core/errors.ts';
import { elementsOf, isRecord } from '../../../core/foreign.ts';
import { resolverFor } from '../../expressions/variable.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { allowedModels } from '../../kernel/request/shared-slots.ts';
import type { CheckedMessage } from '../../transport/web-socket/web-socket-relay.ts';
import { LlmError, llmError } from '../errors.ts';
import type { Guard } from '../guardrails/guard.ts';
import { runGuards } from '../guardrails/guardrails.ts';
import { requestTexts, type TextFields } from '../guardrails/request-texts.ts';
import { membersOf } from '../json-members.ts';
import type { LlmCall } from '../llm-call.ts';
import { requireAllowed } from '../models/model-list.ts';
import { JsonBody } from '../request/json-body.ts';
import { namedModels } from '../request/named-models.ts';
import { countMedia } from '../texts.ts';

/** Events of clients besides those with texts: OpenAI's Realtime API reference, "Client events". */
const WITHOUT_OWNER: ReadonlySet<unknown> = new Set([
  'input_audio_buffer.append',
  'input_audio_buffer.commit',
  'input_audio_buffer.clear',
  'output_audio_buffer.clear',
  'conversation.item.retrieve',
  'conversation.item.truncate',
  'conversation.item.delete',
  'response.cancel',
]);

/** The member that holds the texts of an event. */
const OWNERS: Readonly<Record<string, string>> = {
  'session.update': 'session',
  'transcription_session.update': 'session',
  'conversation.item.create': 'item',
  'response.create': 'response',
};

/**
 * Returns a function that checks each message of a realtime client, in order: it resolves to the message for the provider,
 * masked or unchanged, or to an error event for the client. The session goes on after a rejection. Audio cannot be checked
 * and counts as unseen.
 */
export function realtimeGuard(
  ctx: RequestContext,
  call: LlmCall,
  guards: readonly Guard[],
): (message: Buffer, isBinary: boolean) => Promise<CheckedMessage> {
  return async (message, isBinary) => {
    let event: Readonly<Record<string, unknown>> | undefined;
    try {
      if (isBinary) throw unreadable('a binary message');
      event = (await JsonBody.parse(message)).value;
      return { for: 'upstream', message: (await checkedEvent(ctx, call, guards, event)) ?? message };
    } catch (error) {
      ctx.error ??= messageOf(error);
      if (error instanceof AppError) ctx.errorDetail ??= error.detail;
      return { for: 'client', message: errorEvent(error, event?.['event_id']) };
    }
  };
}

/**
 * Returns a function that checks the models that messages of a realtime client name, such as that of the transcription.
 * `undefined` if the caller may use every model.
 */
export function realtimeModels(
  ctx: RequestContext,
  requested: string,
): ((message: Buffer) => Promise<CheckedMessage>) | undefined {
  if (allowedModels.get(ctx) === undefined) return undefined;
  return async (message) => {
    // Nearly all messages are pieces of audio. A backslash may begin an escaped letter of a name.
    const text = message.toString('latin1');
    if (!/^\s*\{/.test(text) || !MAY_NAME_MODELS.test(text)) return { for: 'upstream', message };
    let event: Readonly<Record<string, unknown>> | undefined;
    try {
      event = (await JsonBody.parse(message)).value;
      // The model of an event itself has no special place.
      for (const { name, member } of namedModels({ event }))
        if (name !== requested) requireAllowed(ctx, name, member);
      return { for: 'upstream', message };
    } catch (error) {
      ctx.error ??= messageOf(error);
      if (error instanceof AppError) ctx.errorDetail ??= error.detail;
      return { for: 'client', message: errorEvent(error, event?.['event_id']) };
    }
  };
}

const MAY_NAME_MODELS = /model|fallback|\\/i;

/** The event with masked texts; undefined if it is unchanged. Throws an `AppError` if it must not be sent. */
async function checkedEvent(
  ctx: RequestContext,
  call: LlmCall,
  guards: readonly Guard[],
  event: Readonly<Record<string, unknown>>,
): Promise<string | undefined> {
  const { type } = event;
  if (type === 'input_audio_buffer.append') call.unseenMedia ??= 1;
  const owner = typeof type === 'string' && Object.hasOwn(OWNERS, type) ? OWNERS[type] : undefined;
  // A provider may have events that the API reference does not have, with texts that are not strings.
  if (owner === undefined && !WITHOUT_OWNER.has(type))
    throw unreadable(`an event of type ${JSON.stringify(type)?.slice(0, 80)}`);
  const copy = structuredClone(event) as Record<string, unknown>;
  const fields = fieldsOf(copy, owner);
  const media = countMedia(fields.get('input'));
  if (media > 0) call.unseenMedia = (call.unseenMedia ?? 0) + media;
  const { texts, replace } = requestTexts(fields, guards);
  const checked = await runGuards(guards, 'request', texts, resolverFor(ctx), ctx.signal);
  if (checked.length === texts.length && checked.every(({ content }, at) => content === texts[at]?.content))
    return undefined;
  replace(checked);
  return JSON.stringify(copy);
}

/**
 * The texts of an event as the fields of a request of the Responses API, which has the same items: those of its owner, and the
 * members of the event itself in one more field.
 */
function fieldsOf(event: Record<string, unknown>, owner: string | undefined): TextFields {
  const isItem = owner === 'item';
  const value = owner === undefined || isItem ? undefined : event[owner];
  const inside = isRecord(value) ? (value as Record<string, unknown>) : undefined;
  const isRead = inside !== undefined || isItem;
  const own = Object.fromEntries(Object.entries(event).filter(([name]) => name !== owner || !isRead));
  if (inside !== undefined && EVENT in inside) throw unreadable(`a member \`${EVENT}\``);
  return {
    isReadable: true,
    fields: () => [EVENT, ...Object.keys(inside ?? {})],
    get(field) {
      if (field === EVENT) return own;
      if (isItem) return field === 'input' && event['item'] !== undefined ? [event['item']] : undefined;
      return field === 'prompt'
        ? (inside?.['prompt'] ?? transcriptionOf(inside)?.['prompt'])
        : inside?.[field];
    },
    set(field, value) {
      if (field === EVENT) Object.assign(event, value);
      else if (isItem) event['item'] = elementsOf(value)[0];
      else {
        // An own `prompt` of a session is a template at the provider, which was refused.
        const place = field === 'prompt' ? transcriptionOf(inside) : inside;
        if (place !== undefined) place[field] = value;
      }
    },
  };
}

/** The field with the members of the event itself. */
const EVENT = '$event';

/** Where a session describes the recordings that the model will hear. The first is the older form. */
function transcriptionOf(
  session: Readonly<Record<string, unknown>> | undefined,
): Record<string, unknown> | undefined {
  const input = membersOf(membersOf(session?.['audio'])?.['input']);
  const transcription = session?.['input_audio_transcription'] ?? input?.['transcription'];
  return membersOf(transcription) as Record<string, unknown> | undefined;
}

const unreadable = (what: string): AppError =>
  llmError('llm_invalid', 'guardrail_unsupported', `guardrails cannot read ${what}`);

/** The error event of the Realtime API. `cause`: the client's id of the event. */
export function errorEvent(error: unknown, cause: unknown): string {
  const isOwn = error instanceof AppError;
  const isFault = !isOwn || error.status >= 500;
  return JSON.stringify({
    type: 'error',
    event_id: `event_${crypto.randomUUID()}`,
    error: {
      type: isFault ? 'server_error' : 'invalid_request_error',
      code: error instanceof LlmError ? error.llmCode : isOwn ? error.code : 'guardrail_failed',
      message: isOwn ? (error.body?.text ?? error.message) : 'the event could not be checked',
      param: null,
      event_id: typeof cause === 'string' ? cause : null,
    },
  });
}
