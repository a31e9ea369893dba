import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { CommandError } from '../../core/exit-codes.ts';
import { LIMITS } from '../../core/limits.ts';
import type { AdminAddress } from './address.ts';
import { notAnAdmin, open, unreachable } from './admin-client.ts';
import type { OwnRequest } from './curl.ts';
import { type OwnReply, sendOwn } from './send-own.ts';
import { traceItems } from './trace-lines.ts';

/** What is told while a trace runs. */
export interface TraceListener {
  /** The gateway waits for a request. */
  armed(): void;
  /** `text` is the event as sent. */
  event(text: string, json: unknown): void;
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
 * Traces one request. Resolves when its trace is complete.
 *
 * @throws CommandError: unreachable for a gateway that is not there, goes away, or whose stream breaks off; usage for
 *   an expression that the gateway refuses
 */
export async function traceOnce(
  address: AdminAddress,
  request: TraceRequest,
  listener: TraceListener,
  signal: AbortSignal,
): Promise<void> {
  const stop = new AbortController();
  const all = AbortSignal.any([signal, stop.signal]);
  let failure: unknown;
  const fail = (error: unknown): void => {
    failure ??= error;
    stop.abort();
  };
  const query = request.match === undefined ? '' : `?${new URLSearchParams({ expression: request.match })}`;
  const response = await open(address, { method: 'POST', path: `/debug/trace${query}`, signal: all });
  if (!(response.headers['content-type'] ?? '').includes('text/event-stream')) {
    response.destroy();
    throw notAnAdmin(address.shown, 'its /debug/trace is not an event stream');
  }
  // From now on the silence between events is no fault; the gateway's signs of life are watched by who shows them.
  response.socket.setTimeout(0);
  const patience =
    request.wait === undefined
      ? undefined
      : setTimeout(() => fail(noRequest(request.wait ?? 0)), request.wait);
  try {
    await read(address, request, response, { ...listener, event: listener.event }, { all, fail, patience });
    if (failure !== undefined) throw failure;
  } catch (error) {
    throw failure ?? error;
  } finally {
    clearTimeout(patience);
    stop.abort();
    response.destroy();
  }
}

interface Running {
  readonly all: AbortSignal;
  readonly fail: (error: unknown) => void;
  readonly patience: NodeJS.Timeout | undefined;
}

async function read(
  address: AdminAddress,
  request: TraceRequest,
  response: IncomingMessage,
  listener: TraceListener,
  { all, fail, patience }: Running,
): Promise<void> {
  let events = 0;
  let isArmed = false;
  let isFinished = false;
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
      if (events === 0) missing = setTimeout(() => fail(notTraced(address, reply())), LIMITS.traceMissing);
    }, fail);
  };
  try {
    for await (const item of traceItems(response)) {
      listener.alive?.();
      // A gateway that does not say `ready` says something else first.
      arm();
      if ('sign' in item) continue;
      clearTimeout(missing);
      clearTimeout(patience);
      const json = parseEvent(item.json, address.shown, 'unreachable');
      events += 1;
      isFinished ||= isLast(json);
      listener.event(item.json, json);
    }
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw unreachable(address, error as NodeJS.ErrnoException, brokenOff(events));
  } finally {
    clearTimeout(missing);
  }
  if (!isFinished)
    throw new CommandError(
      'unreachable',
      `${address.shown} ${brokenOff(events)}`,
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
