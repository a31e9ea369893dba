import { AppError, messageOf } from '../../../core/errors.ts';
import { jsonIn, textIn } from '../../../core/foreign.ts';
import { resolverFor } from '../../expressions/variable.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import type { Released } from '../../transport/web-socket/web-socket-relay.ts';
import { realtimeEvents } from '../formats/realtime/event-texts.ts';
import { dataOf } from '../frames.ts';
import { failed } from '../guardrails/guarded-text.ts';
import { type ResponseGuard, runGuards } from '../guardrails/guardrails.ts';
import { StreamGuard } from '../guardrails/stream-guard.ts';
import { membersOf } from '../json-members.ts';
import type { LlmCall } from '../llm-call.ts';
import { errorEvent } from './request-guard.ts';

/**
 * Returns a function that checks each message of a realtime provider, in order: it resolves to the messages that the client
 * gets now, masked or unchanged. Texts are held back like those of streams, at most until their response is done. What a
 * guardrail rejects or cannot read ends the session with an error event.
 */
export function realtimeResponseGuard(
  ctx: RequestContext,
  call: LlmCall,
  guards: readonly ResponseGuard[],
): (message: Buffer, isBinary: boolean) => Promise<Released> {
  const newGuard = (): StreamGuard =>
    new StreamGuard(realtimeEvents, async (texts) => {
      const checked = await runGuards(guards, 'response', texts, resolverFor(ctx), ctx.signal);
      return checked.map(({ content }) => content);
    });
  let guard = newGuard();
  /** Ids of responses that have begun. */
  const running = new Set<string>();
  const release = async (message: Buffer, isBinary: boolean): Promise<readonly string[]> => {
    const event = isBinary ? undefined : membersOf(jsonIn(message.toString()));
    if (event === undefined) throw failed('response', 'a message of the provider is not a JSON object');
    const id = String(membersOf(event['response'])?.['id']);
    if (event['type'] === 'response.created') running.add(id);
    if (event['type'] === 'response.done') running.delete(id);
    if (running.size > MAX_RUNNING) throw failed('response', 'too many responses at the same time');
    guard.hold(frameOf(message.toString()));
    // No text continues: the next response has a guard, and texts, of its own.
    const isEnd = event['type'] === 'response.done' && running.size === 0;
    if (CONTINUED.test(textIn(event['type'])) && !guard.isFull) return [];
    const released = await guard.release(isEnd);
    call.heldFor = Math.max(call.heldFor ?? 0, Math.round(guard.longest));
    if (isEnd) guard = newGuard();
    return released.map((frame) => dataOf(frame) ?? '');
  };
  return async (message, isBinary) => {
    try {
      return { messages: await release(message, isBinary), isLast: false };
    } catch (error) {
      ctx.error = messageOf(error);
      ctx.errorDetail = error instanceof AppError ? error.detail : undefined;
      ctx.reason = 'Guardrail';
      return { messages: [errorEvent(error, undefined)], isLast: true };
    }
  };
}

/** Events after which more of the same text may follow. */
const CONTINUED = /^response\..*\.delta$/;

/** Responses of one session at the same time; OpenAI has no documented limit, and one is usual. */
const MAX_RUNNING = 64;

/** A message as a server-sent event, which stream guards read. */
const frameOf = (message: string): Buffer => {
  const lines = message.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`);
  return Buffer.from(`${lines.join('')}\n`);
};
