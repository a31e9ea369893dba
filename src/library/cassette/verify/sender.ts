import { setTimeout as wait } from 'node:timers/promises';
import { isSensitiveName, REDACTED } from '../../../core/credentials.ts';
import { messageOf } from '../../../core/errors.ts';
import { isRecord, membersOf } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import { SESSION_HEADER } from '../../../server/mcp/protocol/protocol.ts';
import { bodyOf, contentToSend } from '../body.ts';
import { receivedEvents } from '../cut.ts';
import { EventReader } from '../event-reader.ts';
import type { Body, Exchange, StreamEvent } from '../format.ts';
import { idText, isAnswer, isEndless } from '../session-tape.ts';
import { jsonOf, rpcMethod } from '../tape.ts';
import { MintedValues } from './minted.ts';
import { cancelledCalls, endOf } from './timing.ts';

/** What a request gets now. */
export interface Found {
  /** 0 if there was no answer. */
  readonly status: number;
  readonly body?: Body | undefined;
  readonly events?: readonly StreamEvent[] | undefined;
  /** Why there is no complete answer. */
  readonly failure?: string;
  /** Why it was not sent. */
  readonly skipped?: string;
  /** Whether the client had cancelled it while it ran. */
  readonly wasCancelled?: boolean;
  /** Methods of requests of the server that were not recorded. */
  readonly unexpected: readonly string[];
}

export interface SenderSettings {
  /** Base URL of each gateway of the recording, by its name. */
  readonly urls: Readonly<Record<string, string>>;
  /** Headers of every request, such as credentials, which a request that was refused with 401 does not get. */
  readonly headers: Readonly<Record<string, string>>;
  /** A header that tells which exchange a request belongs to. */
  readonly mark?: string;
  /** Whether texts of models and what servers tell on streams without an end are compared. */
  readonly isStrict: boolean;
}

/** A request of the server that was recorded, with the answer of the client. */
interface Question {
  readonly method: string;
  readonly answer: Readonly<Record<string, unknown>> | undefined;
  isAsked: boolean;
}

/** Sends the requests of a recording: those that followed a response after it, others at the same time, as they were. */
export class Sender {
  readonly #exchanges: readonly Exchange[];
  readonly #settings: SenderSettings;
  /** Session ids by the labels of the recording. */
  readonly #sessions = new Map<string, string>();
  readonly #questions = new Map<string, Question[]>();
  readonly #results = new Map<Exchange, Promise<Found>>();
  readonly #endless = new AbortController();
  /** End streams of which everything has come that was recorded. */
  readonly #endings = new Set<() => void>();
  #isOver = false;
  readonly #minted = new MintedValues();
  readonly #cancelled: ReadonlyMap<Exchange, Exchange>;
  readonly #cancelledAt: ReadonlyMap<Exchange, number>;

  constructor(exchanges: readonly Exchange[], settings: SenderSettings) {
    this.#exchanges = exchanges;
    this.#settings = settings;
    this.#cancelled = cancelledCalls(exchanges);
    this.#cancelledAt = new Map([...this.#cancelled].map(([{ at }, call]) => [call, at]));
    for (const exchange of exchanges) this.#noteQuestions(exchange);
  }

  /** Resolves to what each request gets. Answers of the client are sent when the server asks, and have no entry. */
  async send(): Promise<ReadonlyMap<Exchange, Found>> {
    for (const exchange of this.#exchanges) {
      if (isAnswer(jsonOf(exchange.request.body))) continue;
      const cancelled = this.#cancelled.get(exchange);
      const before = [...this.#results].filter(
        ([earlier]) => earlier !== cancelled && this.#endOf(earlier) <= exchange.at,
      );
      await Promise.all(before.map(([, result]) => result));
      if (cancelled !== undefined) await this.#untilEndOr(cancelled, exchange.at - cancelled.at);
      this.#results.set(exchange, this.#exchange(exchange));
    }
    const finite = [...this.#results].filter(([exchange]) => !isEndless(exchange));
    await Promise.all(finite.map(([, result]) => result));
    // What they lack may still come.
    this.#isOver = true;
    for (const end of this.#endings) end();
    const timer = setTimeout(() => this.#endless.abort(), LIMITS.verifyStreamWait);
    const all = [...this.#results].map(async ([exchange, result]) => {
      const found = await result;
      return [exchange, { ...found, wasCancelled: this.#cancelledAt.has(exchange) }] as const;
    });
    const found = new Map(await Promise.all(all));
    clearTimeout(timer);
    return found;
  }

  /** A call that was cancelled had ended with that. */
  #endOf(exchange: Exchange): number {
    return Math.max(endOf(exchange), this.#cancelledAt.get(exchange) ?? 0);
  }

  /** Resolves when so many milliseconds have passed, or the response of an exchange has ended. */
  async #untilEndOr(exchange: Exchange, ms: number): Promise<void> {
    const ended = new AbortController();
    const passed = wait(ms, undefined, { signal: ended.signal }).catch(() => undefined);
    await Promise.race([this.#results.get(exchange), passed]);
    ended.abort();
  }

  #noteQuestions({ session, response: { events = [] } }: Exchange): void {
    if (session === undefined) return;
    const known = this.#questions.get(session) ?? [];
    this.#questions.set(session, known);
    for (const { json } of events) {
      const { method } = membersOf(json);
      if (typeof method !== 'string' || !('id' in membersOf(json))) continue;
      const id = idText(json);
      const answer = this.#exchanges
        .filter((each) => each.session === session)
        .map(({ request }) => jsonOf(request.body))
        .find((each) => isAnswer(each) && idText(each) === id);
      known.push({ method, answer: isRecord(answer) ? answer : undefined, isAsked: false });
    }
  }

  async #exchange(exchange: Exchange): Promise<Found> {
    const { session, request } = exchange;
    const id = session === undefined ? undefined : this.#sessions.get(session);
    const begins = rpcMethod(request.body) === 'initialize';
    if (session !== undefined && id === undefined && !begins)
      return { status: 0, failure: 'its session has not begun', unexpected: [] };
    const { body } = request;
    if (body !== undefined && 'omitted' in body)
      return { status: 0, skipped: `its body was not recorded: ${body.omitted}`, unexpected: [] };
    const late = AbortSignal.timeout(LIMITS.verifyTimeout);
    const enough = new AbortController();
    const signal = AbortSignal.any([late, enough.signal, this.#left(exchange)]);
    let found: Found = { status: 0, unexpected: [] };
    try {
      const response = await this.#fetch(this.#renewed(exchange), id, signal);
      const minted = response.headers.get(SESSION_HEADER);
      if (session !== undefined && minted !== null) this.#sessions.set(session, minted);
      found = await this.#read(exchange, response, enough, (partial) => {
        found = partial;
      });
      this.#learn(exchange, found);
      return found;
    } catch (error) {
      if (late.aborted)
        return { ...found, failure: `no complete answer in ${LIMITS.verifyTimeout / 1000} s` };
      return signal.aborted ? found : { ...found, failure: `the connection failed: ${causeOf(error)}` };
    }
  }

  #fetch(
    { gateway, request, response: recorded }: Pick<Exchange, 'gateway' | 'request' | 'response'>,
    session: string | undefined,
    signal: AbortSignal,
  ): Promise<Response> {
    const { urls, headers } = this.#settings;
    const content = contentToSend(request.body);
    const added = Object.entries(headers).filter(
      ([name]) => recorded.status !== 401 || !isSensitiveName(name),
    );
    const sent: Record<string, string> = { ...request.headers, ...Object.fromEntries(added) };
    if (content instanceof FormData) delete sent['content-type'];
    if (session !== undefined) sent[SESSION_HEADER] = session;
    return fetch((urls[gateway] ?? '').replace(/\/$/, '') + request.target, {
      method: request.method,
      headers: sent,
      redirect: 'manual',
      signal,
      ...(content !== undefined && { body: content }),
    });
  }

  /** A request with what servers have minted this time. */
  #renewed({
    gateway,
    request,
    response,
    line,
  }: Exchange): Pick<Exchange, 'gateway' | 'request' | 'response'> {
    const { mark } = this.#settings;
    const { body, headers, target } = request;
    return {
      gateway,
      response,
      request: {
        ...request,
        target: this.#minted.target(withoutRedacted(target)),
        headers: { ...headers, ...(mark !== undefined && { [mark]: String(line) }) },
        ...(body !== undefined && 'json' in body && { body: { json: this.#minted.replaced(body.json) } }),
      },
    };
  }

  async #read(
    exchange: Exchange,
    response: Response,
    enough: AbortController,
    partly: (found: Found) => void,
  ): Promise<Found> {
    const { status } = response;
    const type = response.headers.get('content-type') ?? '';
    if (!/^text\/event-stream\b/i.test(type)) {
      partly({ status, unexpected: [] });
      const bytes = new Uint8Array(await response.arrayBuffer());
      return { status, body: await bodyOf({ bytes, type, coding: '' }), unexpected: [] };
    }
    const reader = new EventReader();
    const events: StreamEvent[] = [];
    const unexpected: string[] = [];
    const found: Found = { status, events, unexpected };
    partly(found);
    let answered = 0;
    const { cut } = exchange.response;
    const isRpc = isEndless(exchange) || rpcMethod(exchange.request.body) !== undefined;
    // Not the result, which the end of the gateway has caused.
    const countOf = (all: readonly StreamEvent[]): number => (isRpc ? told(all) : all).length;
    const wanted = countOf(receivedEvents(exchange.response));
    const end = (): void => {
      if (isEndless(exchange) ? !this.#isOver : cut !== 'client') return;
      const isCompared = this.#settings.isStrict || !isEndless(exchange);
      if (!isCompared || countOf(events) >= wanted) enough.abort();
    };
    this.#endings.add(end);
    if (isEndless(exchange)) end();
    for await (const chunk of response.body ?? []) {
      reader.read(chunk, 0);
      // Events without data say that a stream can be resumed.
      for (const event of reader.events.splice(0)) if (event.text !== '') events.push(event);
      for (const { json } of events.slice(answered)) this.#answerTo(json, exchange, unexpected);
      answered = events.length;
      end();
    }
    return found;
  }

  #learn({ response }: Exchange, { body, events = [] }: Found): void {
    this.#minted.learn(jsonOf(response.body), jsonOf(body));
    const all = (response.events ?? []).filter(({ text }) => text === undefined);
    for (const [at, { json }] of all.entries()) this.#minted.learn(json, events[at]?.json);
  }

  /** Aborted when the client leaves, as it had left. */
  #left(exchange: Exchange): AbortSignal {
    if (isEndless(exchange)) return this.#endless.signal;
    if (exchange.response.cut !== 'client') return new AbortController().signal;
    return AbortSignal.timeout(Math.ceil(endOf(exchange) - exchange.at) + LIMITS.verifyLeaveWait);
  }

  /** Answers a request of the server as it was answered. */
  #answerTo(json: unknown, exchange: Exchange, unexpected: string[]): void {
    const { method, id } = membersOf(json);
    if (typeof method !== 'string' || id === undefined) return;
    const question = this.#questions
      .get(exchange.session ?? '')
      ?.find((each) => each.method === method && !each.isAsked);
    if (question === undefined) unexpected.push(method);
    else question.isAsked = true;
    const { result, error } = question?.answer ?? { error: { code: -32_601, message: 'not recorded' } };
    const body = { jsonrpc: '2.0', id, ...(error === undefined ? { result } : { error }) };
    const session = this.#sessions.get(exchange.session ?? '');
    const headers = {
      ...exchange.request.headers,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    };
    const request = { ...exchange.request, method: 'POST', headers, body: { json: body } };
    const { gateway, response } = exchange;
    const signal = AbortSignal.timeout(LIMITS.verifyTimeout);
    // If it fails, the call fails too.
    void this.#fetch({ gateway, request, response }, session, signal).catch(() => undefined);
  }
}

const told = (events: readonly StreamEvent[]): StreamEvent[] =>
  events.filter(({ json }) => json === undefined || 'method' in membersOf(json));

/** Credentials come with the settings: those of the client are not known. */
function withoutRedacted(target: string): string {
  const [path = '', query] = target.split('?');
  const kept = query?.split('&').filter((pair) => !pair.endsWith(`=${REDACTED}`)) ?? [];
  return kept.length === 0 ? path : `${path}?${kept.join('&')}`;
}

/** `fetch` hides why a connection failed. */
const causeOf = (error: unknown): string =>
  messageOf(error instanceof Error && error.cause !== undefined ? error.cause : error);
