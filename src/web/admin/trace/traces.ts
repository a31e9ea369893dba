import { jsonIn, membersOf } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import { createSorter } from '../../../core/trace/sorter.ts';
import { addEvent, EMPTY_TRACE, type TraceModel } from '../../../core/trace-model.ts';
import { ApiError } from '../../shared/api.ts';
import { readEventStream } from '../../shared/event-stream.ts';
import { createStore } from '../../shared/store.ts';

/** A trace of this visit. */
export interface KeptTrace {
  readonly id: number;
  /** When it began or was loaded, in ms since 1970. */
  readonly at: number;
  /** The file that it was loaded from. */
  readonly file?: string;
  readonly model: TraceModel;
  /** Events as they were sent, for saving. */
  readonly lines: readonly string[];
  /** `cut`: the stream ended before the request did. */
  readonly state: 'live' | 'done' | 'cut';
}

export type Waiting =
  | { readonly kind: 'idle' }
  | { readonly kind: 'connecting' }
  | { readonly kind: 'waiting'; readonly since: number; readonly alive: number }
  | { readonly kind: 'refused' | 'lost'; readonly reason: string };

export interface TraceRequest {
  /** A CEL expression; empty for any request. */
  readonly expression: string;
  /** Number of requests. */
  readonly count: number;
  /** Whether to start again when they are complete. */
  readonly again: boolean;
}

export interface Traces {
  /** Newest first. */
  readonly kept: readonly KeptTrace[];
  readonly waiting: Waiting;
  readonly chosen: number | undefined;
}

const store = createStore<Traces>({ kept: [], waiting: { kind: 'idle' }, chosen: undefined });
let count = 0;
let running: AbortController | undefined;

export const useTraces = store.use;

const change = (next: Partial<Traces>): void => store.set({ ...store.get(), ...next });

export const choose = (id: number): void => change({ chosen: id });

function keep(trace: Omit<KeptTrace, 'id'>): number {
  count += 1;
  change({ kept: [{ ...trace, id: count }, ...store.get().kept].slice(0, LIMITS.pageTraces), chosen: count });
  return count;
}

function update(id: number, next: (trace: KeptTrace) => KeptTrace): void {
  change({ kept: store.get().kept.map((trace) => (trace.id === id ? next(trace) : trace)) });
}

export function stopTracing(): void {
  running?.abort();
  running = undefined;
  change({ waiting: { kind: 'idle' } });
}

/** Waits for requests and records their traces, until all are complete or `stopTracing` is called. */
export async function traceNext(request: TraceRequest): Promise<void> {
  stopTracing();
  const own = new AbortController();
  running = own;
  change({ waiting: { kind: 'connecting' } });
  const isCurrent = (): boolean => running === own;
  try {
    do await recordAgain(request, own);
    while (request.again && isCurrent());
    if (isCurrent()) change({ waiting: { kind: 'idle' } });
  } catch (error) {
    if (!isCurrent()) return;
    change({ waiting: isRefusal(error) ? { kind: 'refused', reason: error.message } : GONE });
  }
}

const isRefusal = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.status !== undefined;
const GONE: Waiting = {
  kind: 'lost',
  reason: 'The connection to the gateway was lost while this page waited for a request.',
};
const RETRY = 1_000;

/** Repeated tracing continues after a restart of the gateway. */
async function recordAgain(request: TraceRequest, own: AbortController): Promise<void> {
  try {
    await record(request, own);
  } catch (error) {
    if (own.signal.aborted || !request.again || isRefusal(error)) throw error;
    change({ waiting: GONE });
    await new Promise((resolve) => setTimeout(resolve, RETRY));
  }
}

/** Reads one stream, of one request or of several. */
async function record({ expression, count }: TraceRequest, own: AbortController): Promise<void> {
  const query = new URLSearchParams({
    ...(expression.trim() === '' ? {} : { expression }),
    ...(count > 1 ? { count: String(count) } : {}),
  });
  const sorter = createSorter();
  const ids: number[] = [];
  try {
    await readEventStream(
      `/debug/trace${query.size === 0 ? '' : `?${query}`}`,
      {
        comment: () => alive(),
        event: (data) => {
          alive();
          const trace = sorter.of(jsonIn(data));
          ids[trace] ??= keep({ at: Date.now(), model: EMPTY_TRACE, lines: [], state: 'live' });
          addLine(ids[trace], data);
        },
      },
      own.signal,
    );
  } finally {
    for (const id of ids)
      update(id, (trace) => (trace.state === 'live' ? { ...trace, state: 'cut' } : trace));
  }
  if (ids.length === 0) throw new ApiError('The gateway ended the stream before a request arrived.');
}

function alive(): void {
  const now = Date.now();
  const { waiting: before } = store.get();
  change({ waiting: { kind: 'waiting', since: before.kind === 'waiting' ? before.since : now, alive: now } });
}

function addLine(id: number, data: string): void {
  const json = jsonIn(data);
  update(id, (trace) => ({
    ...trace,
    // Events beyond the limit are counted by the model as lost.
    model: addEvent(trace.model, trace.lines.length < LIMITS.traceEvents ? json : undefined),
    lines: trace.lines.length < LIMITS.traceEvents ? [...trace.lines, data] : trace.lines,
    state: isLast(json) ? 'done' : trace.state,
  }));
}

const isLast = (json: unknown): boolean =>
  membersOf(membersOf(json)['message'])['type'] === 'requestFinished';

/**
 * Displays a saved trace: JSON Lines as written by `agctl proxy trace --save`, or the stream as it was sent. Throws an
 * `Error` if the text contains no trace.
 */
export function load(text: string, file: string): void {
  const lines = text
    .split(/\r?\n/)
    .map((line) => line.replace(/^data: ?/, '').trim())
    .filter((line) => line.startsWith('{'))
    .slice(0, LIMITS.traceEvents);
  // A file may contain several requests.
  const sorter = createSorter();
  const traces: { model: TraceModel; lines: string[]; isDone: boolean }[] = [];
  for (const line of lines) {
    const json = jsonIn(line);
    const index = sorter.of(json);
    const trace = traces[index] ?? { model: EMPTY_TRACE, lines: [], isDone: false };
    traces[index] = trace;
    trace.model = addEvent(trace.model, json);
    trace.lines.push(line);
    trace.isDone ||= isLast(json);
  }
  if (!traces.some(({ model }) => model.steps.length > 0))
    throw new Error(
      `${file} contains no trace. "Save" on this page and agctl proxy trace --save write traces.`,
    );
  for (const { model, lines: own, isDone } of traces.reverse())
    keep({ at: Date.now(), file, model, lines: own, state: isDone ? 'done' : 'cut' });
}
