import { KIB, MIB, SECOND } from './units.ts';

/** Limits of live traces, the log, spans and metrics. Times are in ms and sizes in bytes unless a comment says otherwise. */
export const OBSERVE_LIMITS = {
  /** Levels of a value that are searched for credentials; deeper ones are redacted. The stack has room for about 2,500. */
  redactedDepth: 1_000,
  /**
   * `/debug/trace`: concurrent streams (more are refused), and events and bytes queued for a slow reader of one stream.
   */
  traceWatchers: 1_000,
  traceQueueEvents: 2_000,
  traceQueueBytes: 4 * MIB,
  /** Bytes of a body in a trace; characters of one text, and of all variables at one stage and under one expression. */
  traceBodyBytes: 64 * KIB,
  traceTextLength: 8 * KIB,
  traceStateLength: 64 * KIB,
  traceCelStateLength: 8 * KIB,
  /** Subexpressions whose values are shown. */
  traceCelParts: 32,
  /** Interval of keepalive comments, which readers of `/debug/trace` rely on. */
  traceKeepalive: SECOND,
  /**
   * Streams that follow requests: how many at once for each, how many a second for all together, and for how long. A followed
   * request takes about ten times the CPU time of another (`npm run bench trace`, last row): all of them would stop a loaded gateway.
   */
  traceFollowed: 64,
  traceFollowedPerSecond: 50,
  traceFollowTime: 3600 * SECOND,

  /** Access-log and log lines queued for a slow reader of stdout or stderr; further lines are dropped and counted. */
  logQueueBytes: MIB,
  /**
   * Lines are written in batches: once a batch has this many bytes, or after this time. A write costs 30 µs, as it is done in
   * Node's thread pool; with workers twice, because the primary process copies their lines. Batches of 16 KiB cost 4 µs of
   * its CPU time per request.
   */
  logBatchBytes: 64 * KIB,
  logBatchTime: 20,
  logFieldLength: KIB,
  /**
   * Characters of a server's error message that are kept for the log and traces. Over `logFieldLength`, because secrets are removed
   * before a field is cut; a message may have `targetMessageBytes`, in which that would take tens of milliseconds.
   */
  loggedErrorMessage: 4 * KIB,
  /**
   * How long a shutdown waits for the last lines to be written. A write that has not returned after `logStall` counts
   * as blocked.
   */
  logFlush: SECOND / 2,
  logStall: SECOND / 4,
  /** Minimum interval between two warnings that access-log lines were lost; the metric has the exact count. */
  logLossWarningInterval: 60 * SECOND,
  /**
   * Internal errors that were contained: minimum interval between two log lines about the same place, places that are told
   * apart, and characters of the error's message, which may quote what a server sent.
   */
  internalErrorInterval: 60 * SECOND,
  internalErrorPlaces: 256,
  internalErrorMessage: 256,
  /** Call spans per request; spans or log records queued for the collector (more are dropped and counted), per export. */
  spansPerRequest: 128,
  spanQueue: 4_096,
  spanBatch: 512,
  /** How often spans are exported, timeout of an export and of the final one, minimum interval between warnings. */
  spanBatchTime: SECOND,
  spanExportTimeout: 5 * SECOND,
  /** Together with `exitGrace` less than 2 s: the longest that an unresponsive collector delays a shutdown. */
  spanFlush: 1_500,
  spanWarningInterval: 60 * SECOND,
  /** How often metrics are exported by default, and at most; data points per request: collectors take 4 MiB. */
  metricsExport: 60 * SECOND,
  metricsExportMin: SECOND,
  metricPoints: 1_000,
  /** Wait before a failed export of log records or metrics is repeated, doubled each time; maximum size of the collector's answer. */
  logRetryWait: SECOND / 4,
  logAnswerBytes: 64 * 1024,
  /** Label combinations of one metric; further combinations are counted together as `overflow`. */
  metricSeries: 2_000,
  /** Distinct values of one label that clients or providers choose, and their length. */
  metricLabelValues: 300,
  metricLabelLength: 128,
  /** Buckets of one native histogram; beyond, pairs of buckets are merged. */
  nativeBuckets: 160,
} as const;
