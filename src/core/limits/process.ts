import { MIB, SECOND } from './units.ts';

/** Limits of operator servers, shutdown and reload. Times are in ms and sizes in bytes unless a comment says otherwise. */
export const PROCESS_LIMITS = {
  /** Operator servers (admin, metrics, readiness): concurrent connections, and time for headers (upstream). */
  operatorServerConnections: 200,
  operatorServerHeadersTimeout: 2 * SECOND,
  /**
   * Each half of V8's space for new objects: 32 MiB by default, which 32 connections fill. With 16, a loaded process takes 32 to 46 MiB
   * less, and the CPU time and the 99th percentile of latency do not differ measurably (`bench tail`); with 4, CPU time grows.
   */
  newSpaceHalf: 16 * MIB,
  /**
   * Memory that `workers: auto` plans for each worker, and for the first process: what they take under load (180 MiB measured, 80 idle)
   * and some more.
   */
  workerMemory: 192 * MIB,
  primaryMemory: 128 * MIB,
  /** After SIGTERM: how long open requests may take to finish. */
  drain: 10 * SECOND,
  /**
   * How long a completed shutdown waits for the event loop to become idle, for example for a request to the collector.
   */
  exitGrace: SECOND / 10,
  /** How long a terminal shows no log lines because the banner of `agctl serve` comes first. */
  startupHold: 2 * SECOND,
  /** After the drain timeout: how long slow readers may take to receive the error responses. */
  drainGrace: SECOND / 2,
  /**
   * A changed configuration is read once it has not changed for this long (upstream), because editors write in several
   * steps.
   */
  reloadDebounce: 250,
  /**
   * A configuration that keeps changing is read after this long anyway; a file that is written byte by byte is complete
   * by then.
   */
  reloadMaxDelay: 30 * SECOND,
  /**
   * Events of a watched folder are collected for this long before its files are checked; and the polling interval
   * without events.
   */
  watchDebounce: 50,
  watchPollInterval: 2 * SECOND,
  /** Symbolic links that are followed on the way to a watched file (Linux: 40). */
  watchedFolders: 40,
  /**
   * Garbage collection of an idle process: how long it must have been idle, the share of that time in which its event loop
   * may have run, and what must have happened since the last one: the old generation has grown by so much, or so many
   * resources (connections, timers) that were open then or later are closed. An idle stream is about 32 KiB of memory. A
   * collection pauses the process for 40 to 80 ms with 40 MiB in use.
   */
  idleCheckInterval: 30 * SECOND,
  idleUtilization: 0.05,
  idleHeapGrowth: 32 * MIB,
  idleClosedResources: 256,
  /**
   * Workers: how often each is asked whether its event loop runs, and after which silence it is killed. A collection of a
   * full heap, the longest known pause, takes less than 3 s.
   */
  workerPingInterval: SECOND,
  workerSilence: 10 * SECOND,
  /** How long the admin server waits for what a worker reports. */
  workerAnswer: 2 * SECOND,
  /** How long a worker may take to start; and to end, after the time in which it finishes requests. */
  workerStart: 60 * SECOND,
  workerStopGrace: 5 * SECOND,
  /**
   * A worker that ends is replaced at once; one that ends within `workerShortLife` of its start, after a wait that
   * doubles from the minimum to the maximum.
   */
  workerShortLife: 5 * SECOND,
  workerRestartMin: 100,
  workerRestartMax: 5 * SECOND,
  /** How long a request waits for the worker that has its session, while that is being replaced. */
  workerWait: 5 * SECOND,
  /**
   * Connections that are passed to a worker before it has taken earlier ones; and those that wait, over all workers, until
   * one takes them. A further one is closed.
   */
  workerPassing: 16,
  waitingConnections: 1024,
  /** Log lines of a worker are written when they are complete, or this long. */
  workerLogLine: MIB,
  /** How often the last requests of workers are read while a page shows them. */
  workerRequestInterval: 250,
  /** Names and problems of one reload in the log; further ones are only counted. */
  reloadNames: 20,
  reloadProblems: 10,
} as const;
