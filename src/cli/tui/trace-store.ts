import { appendFile, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { messageOf } from '../../core/errors.ts';
import { CommandError } from '../../core/exit-codes.ts';
import { LIMITS } from '../../core/limits.ts';
import { escapeControls } from '../../core/render/width.ts';
import { createSorter } from '../../core/trace/sorter.ts';
import { addEvent, EMPTY_TRACE, type TraceModel } from '../../core/trace-model.ts';
import { readInput } from '../proxy/dump.ts';
import { matches } from '../proxy/fail-on.ts';
import type { OwnReply } from '../proxy/own-request.ts';
import type { TracePlan } from '../proxy/trace-options.ts';
import { savedEvents, traceRequests } from '../proxy/trace-session.ts';

export type TracePhase = 'connecting' | 'waiting' | 'live' | 'done' | 'lost';

/** The data that the screen displays; a new object for every change. */
export interface TraceView {
  readonly phase: TracePhase;
  /** Address or file, safe to print. */
  readonly source: string;
  readonly isSaved: boolean;
  readonly match: string | undefined;
  readonly sends: boolean;
  /** Number of requests to trace, one after another. */
  readonly count: number;
  /** All traces so far; the last one may be in progress. */
  readonly traces: readonly TraceModel[];
  readonly reply: OwnReply | undefined;
  /** Why the trace was interrupted, and what to do. */
  readonly problem: { readonly text: string; readonly help: string } | undefined;
  /** One line for the user, such as where a trace was saved. */
  readonly note: string;
  /** When the gateway started waiting, and when it last sent data, in ms of `performance.now()`. */
  readonly armedAt: number;
  readonly heardAt: number;
}

/** Traces one request after another and keeps the data for the screen. Never throws: errors are displayed. */
export class TraceStore {
  readonly #plan: TracePlan;
  readonly #cwd: string;
  readonly #listeners = new Set<() => void>();
  #view: TraceView;
  #texts: string[] = [];
  #kept = 0;
  /** Serializes the writes, so that events stay in order. */
  #saving: Promise<void> = Promise.resolve();
  #stop = new AbortController();
  /** Whether a trace met a condition of `--fail-on`. */
  failed = false;
  /** The error if nothing was ever displayed; the command ends with it. */
  firstFailure: CommandError | undefined;

  constructor(plan: TracePlan, cwd: string) {
    this.#plan = plan;
    this.#cwd = cwd;
    const { source } = plan;
    const isSaved = 'file' in source;
    this.#view = {
      phase: 'connecting',
      source: isSaved
        ? source.file === '-'
          ? 'standard input'
          : escapeControls(source.file)
        : source.address.shown,
      isSaved,
      match: isSaved ? undefined : source.request.match,
      sends: !isSaved && source.request.own !== undefined,
      count: plan.count,
      traces: [],
      reply: undefined,
      problem: undefined,
      note: '',
      armedAt: 0,
      heardAt: 0,
    };
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  readonly view = (): TraceView => this.#view;

  /**
   * Loads the saved trace.
   *
   * @throws CommandError
   */
  async load(): Promise<void> {
    const { source } = this.#plan;
    if (!('file' in source)) return;
    const traces: TraceModel[] = [];
    const sorter = createSorter();
    for (const { text, json } of await savedEvents(
      await readInput(source.file, this.#cwd),
      this.#view.source,
    )) {
      this.#texts.push(text);
      const trace = sorter.of(json);
      traces[trace] = addEvent(traces[trace] ?? EMPTY_TRACE, json);
    }
    for (const trace of traces) this.#judge(trace);
    this.#set({ phase: 'done', traces });
  }

  /** Displays traces that are complete. `texts`: their events as they were sent. */
  show(traces: readonly TraceModel[], texts: readonly string[]): void {
    this.#texts = [...texts];
    this.#set({ phase: 'done', traces });
  }

  /** Waits for the next request; resolves when its trace has ended for any reason. */
  async next(): Promise<void> {
    const { source, count } = this.#plan;
    const { phase } = this.#view;
    if ('file' in source || phase === 'waiting' || phase === 'live') return;
    const before = this.#view.traces.length;
    this.#stop = new AbortController();
    this.#set({ phase: 'connecting', reply: undefined, problem: undefined, note: '' });
    try {
      await traceRequests(
        source.address,
        source.request,
        Math.max(1, count - before),
        {
          armed: () =>
            this.#set({
              phase: 'waiting',
              reply: undefined,
              armedAt: performance.now(),
              heardAt: performance.now(),
            }),
          alive: () => {
            this.#view = { ...this.#view, heardAt: performance.now() };
          },
          replied: (reply) => this.#set({ reply }),
          event: (text, json, trace) => this.#event(text, json, before + trace),
          ended: (trace) => this.#judge(this.#view.traces[before + trace]),
        },
        this.#stop.signal,
      );
      this.#set({ phase: 'done' });
    } catch (error) {
      this.#lost(error);
    }
  }

  /** Writes every event so far to the given file, or to a new one. */
  async save(): Promise<void> {
    const name = `trace-${new Date().toISOString().replace(/\D/g, '').slice(0, 14)}.jsonl`;
    try {
      await writeFile(
        resolve(this.#cwd, name),
        this.#texts.map((text) => `${text.replaceAll('\n', ' ')}\n`).join(''),
        { mode: 0o600, flag: 'wx' },
      );
      this.note(`saved to ${name}`);
    } catch (error) {
      this.note(`not saved: ${messageOf(error)}`);
    }
  }

  note(note: string): void {
    this.#set({ note: escapeControls(note) });
  }

  #judge(trace: TraceModel | undefined): void {
    const { failOn } = this.#plan;
    this.failed ||= trace !== undefined && failOn.some((condition) => matches(trace, condition));
  }

  stop(): void {
    this.#stop.abort();
  }

  #event(text: string, json: unknown, index: number): void {
    const { save } = this.#plan;
    this.#kept += text.length;
    if (this.#texts.length < LIMITS.traceEvents && this.#kept < LIMITS.traceKeptLength)
      this.#texts.push(text);
    if (save !== undefined)
      this.#saving = this.#saving
        .then(() => appendFile(resolve(this.#cwd, save), `${text.replaceAll('\n', ' ')}\n`))
        .catch((error: Error) => this.note(`not saved: ${error.message}`));
    const { traces } = this.#view;
    const current = traces[index] ?? EMPTY_TRACE;
    // Nobody reads more events, and each of them costs memory, so they are only counted.
    const trace =
      current.steps.length >= LIMITS.traceEvents
        ? { ...current, dropped: current.dropped + 1 }
        : addEvent(current, json);
    const kept = traces.toSpliced(index, 1, trace);
    const forgotten = index - LIMITS.traceKeptRequests;
    if (forgotten >= 0) kept[forgotten] = EMPTY_TRACE;
    this.#set({ phase: 'live', traces: kept });
  }

  #lost(error: unknown): void {
    if (this.#stop.signal.aborted && !(error instanceof CommandError)) return;
    const known = error instanceof CommandError ? error : new CommandError('bug', String(error));
    if (this.#view.traces.length === 0 && this.#view.phase === 'connecting') this.firstFailure = known;
    this.#set({ phase: 'lost', problem: { text: known.message, help: known.help ?? '' } });
  }

  #set(change: Partial<TraceView>): void {
    this.#view = { ...this.#view, ...change };
    for (const listener of this.#listeners) listener();
  }
}
