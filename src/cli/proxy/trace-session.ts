import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { CommandError } from '../../core/exit-codes.ts';
import { LIMITS } from '../../core/limits.ts';
import { createSorter } from '../../core/trace/sorter.ts';
import type { AdminAddress } from './address.ts';
import { notAnAdmin, open, unreachable } from './admin-client.ts';
import type { OwnRequest } from './curl.ts';
import { type OwnReply, sendOwn } from './send-own.ts';
import { traceItems } from './trace-lines.ts';

/** What is told while traces run. `trace` counts requests from 0. */
export interface TraceListener {
  /** The gateway waits for a request, or for the next one. */
  armed(): void;
  /** `text` is the event as sent. */
  event(text: string, json: unknown, trace: number): void;
  /** No more events come of that one. */
  ended(trace: number): void;
  /** Anything came, a sign of life too. */
  alive?(): void;
  replied?(reply: OwnReply): void;
}

export interface TraceRequest {
  readonly match: string | undefined;
  /** Sent when the gateway waits for it. */
  readonly own: OwnRequest | undefined;
  readonly port: number | undefined;
  /** Longest wait for a request, in ms; undefined for no end. */
  readonly wait: number | undefined;
}

/**
 * Traces `count` requests. Resolves when their traces are complete. One stream has all of them, so that none passes
 * between two streams; a gateway that ends its stream after one request is asked again for the others.
 *
 * @throws CommandError: unreachable for a gateway that is not there, goes away, or whose stream breaks off; usage for
 *   an expression that the gateway refuses
 */
export async function traceRequests(
  address: AdminAddress,
  request: TraceRequest,
  count: number,
  listener: TraceListener,
  signal: AbortSignal,
): Promise<void> {
  for (let first = 0; first < count; ) {
    // A request of our own is sent once a stream.
    const wanted = request.own === undefined ? count - first : 1;
    first += await traceStream(address, request, new Traces(first, wanted, listener), signal);
  }
}

/** One stream; gives how many requests it told of. */
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
  // From now on the silence between events is no fault; the gateway's signs of life are watched by who shows them.
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

/** The requests of one stream: which events are whose, and which of them are over. */
class Traces {
  readonly wanted: number;
  readonly #first: number;
  readonly #sorter = createSorter();
  readonly listener: TraceListener;
  /** Those that have not ended, and whether their last event came. */
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

  /** A sign of the gateway: of life, or that it has told all of a request. */
  sign(text: string): void {
    const id = /^end (.+)$/.exec(text)?.[1];
    const trace = id === undefined ? undefined : this.#sorter.known(id);
    if (trace === undefined || !this.#open.delete(trace)) return;
    this.listener.ended(this.#first + trace);
    if (this.#open.size > 0 || this.begun >= this.wanted) return;
    this.waiting(true);
    this.listener.armed();
  }

  /** The stream has ended; gives whether every request had. */
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
  const arm = (): void => {
    if (isArmed) return;
    isArmed = true;
    listener.armed();
    if (request.own === undefined) return;
    sendOwn(request.own, request.port, all).then(async ({ reply, ended }) => {
      listener.replied?.(reply());
      await ended;
      listener.replied?.(reply());
      if (traces.events === 0)
        missing = setTimeout(() => fail(notTraced(address, reply())), LIMITS.traceMissing);
    }, fail);
  };
  let isWhole = false;
  try {
    for await (const item of traceItems(response)) {
      listener.alive?.();
      // A gateway that does not say `ready` says something else first.
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
    throw unreachable(address, error as NodeJS.ErrnoException, brokenOff(traces.events));
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
}

function brokenOff(events: number): string {
  return events === 0
    ? 'ended the trace before there was a request'
    : `ended the trace after ${events} events, before the request was done`;
}

function isLast(json: unknown): boolean {
  return (json as { message?: { type?: unknown } } | null)?.message?.type === 'requestFinished';
}

function noRequest(wait: number): CommandError {
  return new CommandError(
    'unreachable',
    `no request within ${wait / 1000} s`,
    'send one, or wait longer with --timeout; with --match, is the expression true for it?',
  );
}

function notTraced({ shown }: AdminAddress, { words }: OwnReply): CommandError {
  return new CommandError(
    'unreachable',
    `the request was answered with ${words}, but ${shown} did not trace it`,
    'is that port one of the same gateway, and --match true for the request?',
  );
}

/** The JSON of one event. @throws CommandError with `exit` for a text that is none, such as half a line. */
export function parseEvent(text: string, source: string, exit: 'unreachable' | 'usage'): unknown {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value;
  } catch {
    // Told below.
  }
  throw new CommandError(
    exit,
    `${source} has an event that is not JSON, or not whole`,
    'a trace is what agctl proxy trace --raw prints, or --save writes',
  );
}

/** The events of a saved trace. @throws CommandError (usage) */
export async function savedEvents(bytes: Buffer, source: string): Promise<{ text: string; json: unknown }[]> {
  const events: { text: string; json: unknown }[] = [];
  for await (const item of traceItems(Readable.from([bytes])))
    if ('json' in item) events.push({ text: item.json, json: parseEvent(item.json, source, 'usage') });
  if (events.length === 0)
    throw new CommandError(
      'usage',
      `${source} has no trace in it`,
      'a trace is what agctl proxy trace --raw prints, or --save writes',
    );
  return events;
}
