import { type ChildProcess, fork } from 'node:child_process';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { LIMITS, type Limits } from '../../core/limits.ts';
import type { LineSink, Log } from '../../core/log.ts';
import type { ShownBound } from '../../core/overview.ts';
import type { MetricValues } from '../observe/metrics/family.ts';
import type { RecentRequest } from '../observe/recent-requests.ts';
import type { CountedServices, ServiceStep } from '../observe/service-history.ts';
import type { PrimaryCalls, WorkerCalls, WorkerStart } from './calls.ts';
import { Link } from './link.ts';
import type { MemoryUsage } from './memory-usage.ts';
import type { Activity, OpenRequests, ProcessView } from './process-view.ts';
import type { Samples } from './profile/samples.ts';

/** A connection that was accepted at a port. */
export interface Connection {
  readonly portId: string;
  readonly socket: Socket;
}

/** How a worker ended. */
export interface WorkerEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface WorkerProcessOptions {
  /** The program, and the arguments that make it a worker. */
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
  readonly sinks: { readonly log: LineSink; readonly accessLog: LineSink };
  readonly limits: Limits;
  calls(worker: WorkerProcess): PrimaryCalls;
  /** Called when connections were closed that a worker had not taken: it can get others. */
  lostConnections(): void;
}

const SCOPE = 'agctl::workers';

/** One worker, as the primary process sees it. */
export class WorkerProcess implements ProcessView {
  readonly index: number;
  readonly name: string;
  /** Prefix of its Unix sockets. */
  readonly sockets: string;
  readonly link: Link<PrimaryCalls, WorkerCalls>;
  readonly startedAt = performance.now();
  /** Resolves when the process has ended. */
  readonly ended: Promise<WorkerEnd>;
  /** It takes connections. */
  isReady = false;
  /** It was ready once: only then is another one started in its place. */
  hasStarted = false;
  isReplaced = false;
  /** Connections passed to it that it has not taken yet, in order. */
  readonly #untaken: (Connection & { readonly passedAt: number })[] = [];
  /** Its metrics when they were last read. */
  lastMetrics: readonly MetricValues[] = [];
  readonly #child: ChildProcess;
  readonly #log: Log;
  readonly #limits: Limits;
  readonly #lostConnections: () => void;
  #ping: NodeJS.Timeout | undefined;

  constructor(index: number, sockets: string, options: WorkerProcessOptions) {
    this.index = index;
    this.name = `worker ${index}`;
    this.sockets = sockets;
    this.#log = options.log;
    this.#limits = options.limits;
    this.#lostConnections = options.lostConnections;
    this.#child = fork(options.program, options.args, {
      env: { ...options.env },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      // The port of a debugger can be opened once.
      execArgv: process.execArgv.filter((argument) => !argument.startsWith('--inspect')),
    });
    this.link = new Link(this.#child, options.calls(this));
    const relays = [
      new LineRelay(this.#child.stdout, options.sinks.accessLog),
      new LineRelay(this.#child.stderr, options.sinks.log),
    ];
    this.ended = new Promise((resolve) => {
      const over = (code: number | null, signal: NodeJS.Signals | null): void => {
        this.isReady = false;
        clearInterval(this.#ping);
        this.link.close();
        for (const relay of relays) relay.end();
        resolve({ code, signal });
      };
      // After `exit`, output may still arrive. It ends with `close`, unless a child of the worker keeps the pipe open.
      this.#child.once('exit', (code, signal) => {
        const timer = setTimeout(() => over(code, signal), LIMITS.exitGrace);
        this.#child.once('close', () => {
          clearTimeout(timer);
          over(code, signal);
        });
      });
      this.#child.once('error', () => over(null, null));
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Starts the worker. Rejects with the reason if it does not become ready. */
  async start(start: WorkerStart): Promise<void> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => reject(new Error('it did not start in time')), this.#limits.workerStart);
    try {
      await Promise.race([this.link.call('start', start), late]);
    } finally {
      clearTimeout(timer);
    }
    this.isReady = true;
    this.hasStarted = true;
    this.#watch();
  }

  /** Number of connections passed to it that it has not taken yet. */
  get passing(): number {
    return this.#untaken.length;
  }

  /** Passes a connection to it. */
  pass(connection: Connection): void {
    this.#untaken.push({ ...connection, passedAt: performance.now() });
    this.link.pass(connection.portId, connection.socket);
  }

  /** Returns the oldest of the connections, which it has taken or refused. */
  answered(): Connection | undefined {
    return this.#untaken.shift();
  }

  /** The connections that it has not taken, and, as it has ended, will not take. Nothing of them has been read. */
  takeBack(): readonly Connection[] {
    return this.#untaken.splice(0);
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  /** Kills the worker if its event loop does not answer for `workerSilence` ms. */
  #watch(): void {
    let askedAt: number | undefined;
    this.#ping = setInterval(() => {
      const now = performance.now();
      if (askedAt === undefined) {
        askedAt = now;
        this.link.call('ping').then(
          () => {
            askedAt = undefined;
            this.#dropLost(now);
          },
          () => undefined,
        );
      } else if (now - askedAt > this.#limits.workerSilence) {
        this.#log.error(SCOPE, 'a worker does not answer and is killed', {
          worker: this.index,
          pid: this.pid,
          'silent.ms': Math.round(now - askedAt),
        });
        this.kill();
      }
    }, this.#limits.workerPingInterval).unref();
  }

  /**
   * Closes connections that were passed before `askedAt` and did not arrive: the worker, which has answered since, has no
   * free file descriptor for them.
   */
  #dropLost(askedAt: number): void {
    const lost = this.#untaken.filter(({ passedAt }) => passedAt < askedAt);
    if (lost.length === 0) return;
    this.#untaken.splice(0, lost.length);
    for (const { socket } of lost) socket.destroy();
    this.#log.warn(SCOPE, 'a worker could not take connections, which were closed', {
      worker: this.index,
      connections: lost.length,
      help: 'it probably has too many open files: raise the limit (ulimit -n)',
    });
    this.#lostConnections();
  }

  activity(): Promise<Activity> {
    return inTime(this.link.call('activity'));
  }

  bounds(): Promise<readonly ShownBound[]> {
    return inTime(this.link.call('bounds'));
  }

  memory(): Promise<MemoryUsage> {
    return inTime(this.link.call('memory'));
  }

  tasks(): Promise<readonly string[]> {
    return inTime(this.link.call('tasks'));
  }

  async metrics(): Promise<readonly MetricValues[]> {
    this.lastMetrics = await inTime(this.link.call('metrics'));
    return this.lastMetrics;
  }

  openRequests(): Promise<OpenRequests> {
    return inTime(this.link.call('openRequests'));
  }

  recentRequests(afterId: number): Promise<readonly RecentRequest[]> {
    return inTime(this.link.call('recentRequests', afterId));
  }

  services(step: ServiceStep, from: number, to: number): Promise<CountedServices> {
    return inTime(this.link.call('services', step, from, to));
  }

  cpuSamples(seconds: number, frequency: number): Promise<Samples | undefined> {
    return this.link.call('cpuSamples', seconds, frequency);
  }

  heapSamples(seconds: number): Promise<Samples | undefined> {
    return this.link.call('heapSamples', seconds);
  }

  stopSampling(): void {
    this.link.tell('stopSampling');
  }
}

/** Rejects if a worker takes longer than `LIMITS.workerAnswer`: its event loop is blocked, and the others have answers. */
async function inTime<T>(answer: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error('the worker does not answer')), LIMITS.workerAnswer);
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

const NEWLINE = 0x0a;

/** Copies the output of a worker to a log, in whole lines: those of several workers do not mix. */
class LineRelay {
  readonly #sink: LineSink;
  /** The beginning of a line. */
  #rest: Buffer[] = [];
  #length = 0;

  constructor(output: Readable | null, sink: LineSink) {
    this.#sink = sink;
    output?.on('data', (chunk: Buffer) => this.#add(chunk));
  }

  #add(chunk: Buffer): void {
    const end = chunk.lastIndexOf(NEWLINE) + 1;
    if (end > 0) {
      this.#sink.write(Buffer.concat([...this.#rest, chunk.subarray(0, end)]).toString());
      this.#rest = [];
      this.#length = 0;
    }
    if (end === chunk.length) return;
    this.#rest.push(chunk.subarray(end));
    this.#length += chunk.length - end;
    if (this.#length > LIMITS.workerLogLine) this.end();
  }

  /** Writes the rest as a line: the worker has ended in the middle of it, or the line is too long. */
  end(): void {
    if (this.#rest.length === 0) return;
    this.#sink.write(`${Buffer.concat(this.#rest).toString()}\n`);
    this.#rest = [];
    this.#length = 0;
  }
}
