import { once } from 'node:events';
import { setImmediate as turnOver, setTimeout as wait } from 'node:timers/promises';
import { LIMITS } from '../../core/limits.ts';
import { contentToSend } from './body.ts';
import { isWhole, receivedEvents } from './cut.ts';
import { frameOf } from './event-reader.ts';
import type { Exchange, StreamEvent } from './format.ts';
import type { ReplaySession } from './replay-session.ts';
import { isEndless, isUnanswered } from './session-tape.ts';

/** How a recorded response is sent. */
export interface Playing {
  /** Whether pauses are left out. */
  readonly isFast: boolean;
  /** Aborted when the client has left. */
  readonly signal: AbortSignal;
  /** Of the client, if the exchange belongs to one. */
  readonly session?: ReplaySession | undefined;
  /** A JSON value as this client gets it; undefined: not at all. */
  rewritten(json: unknown): unknown;
  /** An event that ends the stream because the client has not answered a request in time. */
  unanswered(id: string): unknown;
  /** Headers beside those that were recorded. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The recorded response. */
export async function play(exchange: Exchange, playing: Playing): Promise<Response> {
  const { status, headers, body, events, cut } = exchange.response;
  // It has never been answered: the client will leave again.
  if (status === 0) return left(playing.signal);
  const init = { status, headers: { ...headers, ...playing.headers } };
  if (events !== undefined) {
    const frames = ReadableStream.from(framesOf(exchange, receivedEvents(exchange.response), playing));
    return new Response(frames, init);
  }
  const isAnswered = await answersOf(exchange, exchange.response.ms, playing);
  if (isAnswered !== true) return Response.json(playing.unanswered(isAnswered), init);
  const sent = contentToSend(
    body === undefined || !('json' in body) ? body : { json: playing.rewritten(body.json) },
  );
  // A form has another boundary than it had.
  if (sent instanceof FormData) delete init.headers['content-type'];
  const isEmpty = status === 204 || status === 205 || status === 304;
  if (cut === undefined) return new Response(isEmpty ? null : (sent ?? null), init);
  return new Response(ReadableStream.from(brokenOff(sent, cut, playing.signal)), init);
}

async function left(signal: AbortSignal): Promise<never> {
  if (!signal.aborted) await once(signal, 'abort');
  throw signal.reason;
}

/** What was sent before the end, then as the end was: the client waits until it leaves, or the connection breaks. */
async function* brokenOff(
  sent: string | Buffer | FormData | undefined,
  cut: 'client' | 'server',
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  if (typeof sent === 'string' || Buffer.isBuffer(sent)) yield Buffer.from(sent);
  await turnOver();
  if (cut === 'client') await left(signal);
  throw new Error('the recorded response ends here');
}

async function* framesOf(
  exchange: Exchange,
  events: readonly StreamEvent[],
  playing: Playing,
): AsyncGenerator<Uint8Array> {
  const { isFast, signal } = playing;
  const { at, response } = exchange;
  const isLeft = response.cut === 'client' && !isWhole(response);
  // A comment, with which the head of the response is sent.
  if (!isFast || events.length === 0 || isEndless(exchange)) yield Buffer.from(':\n\n');
  let now = at;
  for (const event of events) {
    const time = at + event.ms;
    const isAnswered = await answersOf(exchange, event.ms, playing);
    if (isAnswered !== true) {
      yield Buffer.from(frameOf({ ms: 0, json: playing.unanswered(isAnswered) }));
      return;
    }
    const since = Math.max(now, await lastMessage(exchange, time, playing));
    if (isFast || time <= since) await turnOver();
    else await wait(time - since, undefined, { signal });
    now = time;
    const json = event.json === undefined ? undefined : playing.rewritten(event.json);
    if (event.json === undefined || json !== undefined)
      yield Buffer.from(frameOf({ ...event, ...(json !== undefined && { json }) }));
  }
  const isCancelled = isUnanswered(exchange) && (await untilCancelled(exchange, playing));
  // A client whose stream has ended would open another one.
  if (!isCancelled && (isLeft || isEndless(exchange) || isUnanswered(exchange))) await left(signal);
  // What was written is sent first.
  if (response.cut === 'server') {
    await turnOver();
    throw new Error('the recorded response ends here');
  }
}

/** Waits until the client has answered what the server had waited for. Returns the id of a request that it does not answer. */
async function answersOf(
  exchange: Exchange,
  ms: number,
  { session, signal }: Playing,
): Promise<true | string> {
  if (session === undefined || exchange.request.method !== 'POST') return true;
  for (const { id } of session.tape.answersBefore(exchange.at + ms, exchange)) {
    const late = AbortSignal.timeout(LIMITS.cassetteAnswerWait);
    try {
      await session.untilAnswered(id, AbortSignal.any([signal, late]));
    } catch (error) {
      if (signal.aborted || !late.aborted) throw error;
      return id;
    }
  }
  return true;
}

/** Waits until the client cancels a call, if it had cancelled it. */
async function untilCancelled(exchange: Exchange, playing: Playing): Promise<boolean> {
  const { session } = playing;
  if (session === undefined) return false;
  const all = session.tape.answersBefore(Number.POSITIVE_INFINITY, exchange);
  return all.length > 0 && (await answersOf(exchange, Number.POSITIVE_INFINITY, playing)) === true;
}

/**
 * When the client had sent the last message before an event, which it has sent again by now: what a server tells on a stream of GET
 * has followed from it. For other streams, the start of the exchange, or the last answer.
 */
async function lastMessage(exchange: Exchange, time: number, { session, signal }: Playing): Promise<number> {
  if (session === undefined) return exchange.at;
  if (exchange.request.method !== 'GET') {
    const answers = session.tape.answersBefore(time, exchange);
    return Math.max(exchange.at, ...answers.map(({ at }) => at));
  }
  const { count, last } = session.tape.postsBefore(time);
  await session.untilPosts(count, signal);
  return last;
}
