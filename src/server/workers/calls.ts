import type { LineFormat } from '../../core/log.ts';
import type { TraceEvent } from '../../core/trace/event.ts';
import type { Environment } from '../../core/yaml/env.ts';
import type { RereadProblem } from '../kernel/files/reloaded-file.ts';
import type { MetricValues } from '../observe/metrics/family.ts';
import type { ProcessView } from './process-view.ts';

/** An open port: its number, and a short name that is the same in all processes. */
export interface PortInfo {
  readonly id: string;
  readonly port: number;
}

/** The open ports, by `portKey`. */
export type PortList = Readonly<Record<string, PortInfo>>;

/** Prefixes of the Unix sockets of the running workers, by their number. */
export type PeerList = Readonly<Record<number, string>>;

/** What a worker needs to start. */
export interface WorkerStart {
  /** From 1 to `count`. */
  readonly index: number;
  readonly count: number;
  /** The configuration, its name in messages, and the folder that its paths are relative to. */
  readonly text: string;
  readonly file: string;
  readonly folder: string;
  /** The variables that it refers to. */
  readonly env: Environment;
  readonly ports: PortList;
  /** Prefix of the worker's Unix sockets. */
  readonly sockets: string;
  /** `RuntimeSettings.instance`. */
  readonly instance: string;
  /** Key for session ids, in hexadecimal digits. */
  readonly sessionKey: string;
  readonly logDirectives: string;
  /** Formats of lines if a terminal shows them; `config.logging.format` otherwise. */
  readonly formats?: LineFormats | undefined;
}

/** Formats of the log and of the access log. */
export interface LineFormats {
  readonly log: LineFormat;
  readonly accessLog: LineFormat;
}

export interface TraceRequest {
  readonly expression: string | undefined;
  readonly follow: boolean;
  readonly count: number | undefined;
}

/** What a worker does when the primary process asks. */
export type WorkerCalls = Omit<{ [Name in keyof ProcessView]: ProcessView[Name] }, 'name'> & {
  start(start: WorkerStart): Promise<void>;
  /** Answers at once, unless the event loop is blocked. */
  ping(): void;
  /** Compiles a configuration and keeps it ready. Returns why it cannot be used, if so. */
  prepare(text: string, env: Environment, ports: PortList): Promise<string | undefined>;
  /** Activates the configuration that was prepared, or discards it. */
  commit(): void;
  abort(): Promise<void>;
  filesChanged(files: readonly string[]): Promise<RereadProblem>;
  /** Finishes open requests, and ends. */
  drain(): Promise<void>;
  peers(peers: PeerList): void;
  logDirectives(directives: string): void;
  /** An event of the shared state. */
  event(key: string, event: unknown): void;
  recordRequests(): void;
  /** Traces requests until `untrace`. Their events are sent with `traced`. */
  trace(id: number, request: TraceRequest): void;
  untrace(id: number): void;
};

/** What the primary process does when a worker asks. */
export type PrimaryCalls = {
  /** The worker has answered all requests; its metrics will not change any more. */
  drained(metrics: readonly MetricValues[]): void;
  /** The worker has taken the oldest connection that was passed to it; or refused it, because it will end. */
  taken(): void;
  refused(): void;
  /** An operation on the shared state. */
  shared(key: string, name: string, args: readonly unknown[]): unknown;
  traced(id: number, event: TraceEvent): void;
  /** The last event of a request; `requestId` is empty if only one is traced. */
  traceEnded(id: number, requestId: string): void;
  /** The worker has a bug and will end: it gets no more connections. */
  failing(): void;
};
