import { KIB, MIB, SECOND } from './units.ts';

/** Limits of the admin server and its pages. Times are in ms and sizes in bytes unless a comment says otherwise. */
export const ADMIN_LIMITS = {
  /** Admin server: time for a whole request, and for an idle connection. */
  adminRequestTimeout: 10 * SECOND,
  adminKeepAlive: 5 * SECOND,
  adminCheckingInterval: 500,
  /** How long responses in progress may take when the admin server closes. */
  adminDrain: SECOND,
  adminHeaderBytes: 16 * KIB,
  /**
   * A configuration to validate, or an expression with its sample; a larger one is answered with status 413. Parsing
   * that much blocks the event loop for less than 1 s.
   */
  adminBody: MIB,
  /** Open event streams of the admin server (traces, requests); more are answered with status 503. */
  adminStreams: 64,
  /**
   * A request that a web page sends through the gateway: number of headers, bytes of the response (the rest is cut
   * off), total time.
   */
  playgroundHeaders: 32,
  playgroundReplyBytes: 16 * MIB,
  playgroundTimeout: 600 * SECOND,
  /** Longest time after which a temporary log level is reverted. */
  logLevelMaxDuration: 24 * 3600 * SECOND,
  /**
   * Who has changed what: events of one process that are kept without a database; refused attempts that are written in a minute, of all
   * callers and of one, beyond which they are only counted; callers that are told apart for that; how long an answer waits for its event to be written to the database and the file; how often old
   * events are deleted.
   */
  auditRecent: 1_000,
  auditRefusals: 120,
  auditRefusalsPerCaller: 20,
  auditCallers: 50,
  auditRefusalsInterval: 60 * SECOND,
  auditWait: 2 * SECOND,
  auditExpiryInterval: 3600 * SECOND,
  /** Events of one page of `/api/audit`. */
  auditPage: 500,
  /** Keys of one page of `/api/keys`. */
  keyPage: 500,
  /** Characters of the configuration dump that are serialized before other work gets a turn. */
  dumpChunkLength: 64 * KIB,
  /**
   * Requests kept for the admin server, and bytes of their JSON text together; beyond either, the oldest are dropped.
   * Characters of one request's fields; further fields are left out. Escaped (six times) and as UTF-8 (three times),
   * that is 576 KiB.
   */
  recentRequests: 1_000,
  recentRequestBytes: MIB,
  recentRequestLength: 32 * KIB,
  /** MCP targets, providers and models whose calls are counted for the Health page; each takes 29 KiB of a process. */
  countedServices: 200,
  /** CPU profiles: seconds, and sampling frequency in Hz (upstream). */
  profileSeconds: { min: 1, max: 300, default: 10 },
  profileFrequency: { min: 1, max: 1_000, default: 100 },
  /** Average bytes between two samples of the heap profile (V8's and pprof's default). */
  heapSampleBytes: 512 * KIB,
  heapSampleDepth: 64,
  /** Open requests that `/debug/tasks` lists. */
  listedTasks: 1_000,
  /** Keys that the catalog judges for one tool, and how long it may take in ms: the rest is only counted. */
  judgedCallers: 500,
  judgingTime: 2 * SECOND,
  /** Subjects of budgets that `/api/budgets` lists. */
  shownSubjects: 10_000,
  /**
   * Requests (about 1 KiB each) and traces that a page of the admin UI keeps during one visit; beyond that, the oldest
   * are dropped.
   */
  pageRequests: 50_000,
  pageTraces: 50,
} as const;
