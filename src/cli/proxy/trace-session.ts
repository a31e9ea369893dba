import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { CommandError } from '../../core/exit-codes.ts';
import { membersOf } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { createSorter } from '../../core/trace/sorter.ts';
import type { AdminAddress } from './address.ts';
import { notAnAdmin, open, unreachable } from './admin-client.ts';
import { receivedJson } from './answered.ts';
import { type OwnReply, type OwnRequest, sendOwn } from './own-request.ts';
import { traceItems } from './trace-lines.ts';

/** Receives the events of traces. `trace` counts requests from 0. */
export interface TraceListener {
  /** The gateway is waiting for a request, or for the next one. */
  armed(): void;
  /** `text` is the event as it was sent. */
  event(text: string, json: unknown, trace: number): void;
  /** All events of that request have arrived. */
  ended(trace: number): void;
  /** Any data arrived, including a keepalive. */
  alive?(): void;
  replied?(reply: OwnReply): void;
}

export interface TraceRequest {
  readonly match: string | undefined;
  /** A request to send once the gateway is waiting for it. */
  readonly own: OwnRequest | undefined;
  readonly port: number | undefined;
  /** Longest wait for a request, in ms; undefined for no limit. */
  readonly wait: number | undefined;
}

/**
 * Traces `count` requests, and resolves when their traces are complete. Uses one stream for all of them, so that no
 * request is missed between two streams; if a gateway ends its stream after one request, it opens another one.
 *
 * @throws CommandError with exit name `unreachable` if the gateway is not available, stops, or interrupts the stream;
 * `usage` if the gateway refuses the expression
 */
export async function traceRequests(
  address: AdminAddress,
  request: TraceRequest,
  count: number,
  listener: TraceListener,
  signal: AbortSignal,
): Promise<void> {
  for (let first = 0; first < count; ) {
    // One request is sent per stream.
    const wanted = request.own === undefined ? count - first : 1;
    first += await traceStream(address, request, new Traces(first, wanted, listener), signal);
  }
}

/** Reads one stream and returns the number of traced requests. */
async function traceStream(
  address: AdminAddress,
  request: TraceRequest,
  traces: Traces,
  signal: AbortSignal,
): Promise<number> {
  const stop = new AbortController();
  const all = AbortSignal.any([signal, stop.signal]);
  let failure: unknown;
  const fail = (error: unknown): void => {
    failure ??= error;
    stop.abort();
  };
  const { match, wait } = request;
  const query = new URLSearchParams({
    ...(match === undefined ? {} : { expression: match }),
    ...(traces.wanted === 1 ? {} : { count: String(traces.wanted) }),
  });
  const path = `/debug/trace${query.size === 0 ? '' : `?${query}`}`;
  const response = await open(address, { method: 'POST', path, signal: all });
  if (!(response.headers['content-type'] ?? '').includes('text/event-stream')) {
    response.destroy();
    throw notAnAdmin(address.shown, 'its /debug/trace is not an event stream');
  }
  // From here on, silence between events is normal; the listener watches the keepalives of the gateway.
  response.socket.setTimeout(0);
  let patience: NodeJS.Timeout | undefined;
  traces.waiting = (isWaiting) => {
    clearTimeout(patience);
    if (isWaiting && wait !== undefined) patience = setTimeout(() => fail(noRequest(wait)), wait);
  };
  traces.waiting(true);
  try {
    await read(address, request, response, traces, { all, fail });
    if (failure !== undefined) throw failure;
    return traces.begun;
  } catch (error) {
    throw failure ?? error;
  } finally {
    clearTimeout(patience);
    stop.abort();
    response.destroy();
  }
}

/** The requests of one stream: assigns events to requests and knows which requests are complete. */
class Traces {
  readonly wanted: number;
  readonly #first: number;
  readonly #sorter = createSorter();
  readonly listener: TraceListener;
  /** Incomplete requests, and whether their last event has arrived. */
  readonly #open = new Map<number, { isFinished: boolean }>();
  events = 0;
  waiting: (isWaiting: boolean) => void = () => undefined;

  constructor(first: number, wanted: number, listener: TraceListener) {
    this.#first = first;
    this.wanted = wanted;
    this.listener = listener;
  }

  get begun(): number {
    return this.#sorter.count;
  }

  event(text: string, json: unknown): void {
    this.events += 1;
    if (this.#open.size === 0) this.waiting(false);
    const trace = this.#sorter.of(json);
    const state = this.#open.get(trace) ?? { isFinished: false };
    this.#open.set(trace, state);
    state.isFinished ||= isLast(json);
    this.listener.event(text, json, this.#first + trace);
  }

  /** Handles a comment: a keepalive, or the end of a request. */
  sign(text: string): void {
    const id = /^end (.+)$/.exec(text)?.[1];
    const trace = id === undefined ? undefined : this.#sorter.known(id);
    if (trace === undefined || !this.#open.delete(trace)) return;
    this.listener.ended(this.#first + trace);
    if (this.#open.size > 0 || this.begun >= this.wanted) return;
    this.waiting(true);
    this.listener.armed();
  }

  /** The stream has ended; returns whether every request was complete. */
  end(): boolean {
    const isWhole = this.begun > 0 && [...this.#open.values()].every(({ isFinished }) => isFinished);
    for (const trace of this.#open.keys()) this.listener.ended(this.#first + trace);
    return isWhole;
  }
}

interface Running {
  readonly all: AbortSignal;
  readonly fail: (error: unknown) => void;
}

async function read(
  address: AdminAddress,
  request: TraceRequest,
  response: IncomingMessage,
  traces: Traces,
  { all, fail }: Running,
): Promise<void> {
  const { listener } = traces;
  let isArmed = false;
  let missing: NodeJS.Timeout | undefined;
  let answered: Promise<void> | undefined;
  const arm = (): void => {
    if (isArmed) return;
    isArmed = true;
    listener.armed();
    if (request.own === undefined) return;
    answered = sendOwn(request.own, request.port, all).then(async ({ reply, ended }) => {
      listener.replied?.(reply());
      await ended;
      listener.replied?.(reply());
      if (traces.events === 0)
        missing = setTimeout(() => fail(notTraced(address, reply())), LIMITS.traceFirstEventTimeout);
    }, fail);
  };
  let isWhole = false;
  try {
    for await (const item of traceItems(response)) {
      listener.alive?.();
      // A gateway that does not send `ready` sends other data first.
      arm();
      if ('sign' in item) {
        traces.sign(item.sign);
        continue;
      }
      clearTimeout(missing);
      traces.event(item.json, parseEvent(item.json, address.shown, 'unreachable'));
    }
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw unreachable(address, error, brokenOff(traces.events));
  } finally {
    clearTimeout(missing);
    isWhole = traces.end();
  }
  if (!isWhole)
    throw new CommandError(
      'unreachable',
      `${address.shown} ${brokenOff(traces.events)}`,
      'it may have stopped or crashed: see its log',
    );
  // The response arrives on another connection, and may be later than the last event.
  const late = new AbortController();
  await Promise.race([
    answered,
    delay(LIMITS.traceReplyTimeout, undefined, { signal: AbortSignal.any([all, late.signal]) }).catch(
      () => undefined,
    ),
  ]);
  late.abort();
}

function brokenOff(events: number): string {
  return events === 0
    ? 'ended the trace before a request arrived'
    : `ended the trace after ${events} events, before the request was complete`;
}

function isLast(json: unknown): boolean {
  return membersOf(membersOf(json)['message'])['type'] === 'requestFinished';
}

function noRequest(wait: number): CommandError {
  return new CommandError(
    'unreachable',
    `no request within ${wait / 1000} s`,
    'send one, or wait longer with --timeout; with --match, check that the expression is true for it',
  );
}

function notTraced({ shown }: AdminAddress, { words }: OwnReply): CommandError {
  return new CommandError(
    'unreachable',
    `the request was answered with ${words}, but ${shown} did not trace it`,
    'is it a port of the same gateway, and is --match true for the request?',
  );
}

/**
 * Parses one event.
 *
 * @throws CommandError with the exit name `exit` for invalid JSON, such as half a line
 */
function parseEvent(text: string, source: string, exit: 'unreachable' | 'usage'): unknown {
  const value = receivedJson(text);
  if (typeof value === 'object' && value !== null) return value;
  throw new CommandError(
    exit,
    `${source} has an event that is not JSON, or is incomplete`,
    'agctl proxy trace --raw prints a trace, and --save writes one',
  );
}

/**
 * The events of a saved trace.
 *
 * @throws CommandError with exit name `usage`
 */
export async function savedEvents(bytes: Buffer, source: string): Promise<{ text: string; json: unknown }[]> {
  const events: { text: string; json: unknown }[] = [];
  for await (const item of traceItems(Readable.from([bytes])))
    if ('json' in item) events.push({ text: item.json, json: parseEvent(item.json, source, 'usage') });
  if (events.length === 0)
    throw new CommandError(
      'usage',
      `${source} contains no trace`,
      'agctl proxy trace --raw prints a trace, and --save writes one',
    );
  return events;
}
