/**
 * Every bound of the gateway and its commands; those of the memory components are in `memory-limits.ts`. Each bound has
 * a stated outcome when it is exceeded, and every buffer, queue and wait has a bound. Times are in ms and sizes in
 * bytes unless a comment says otherwise. Values marked (Node) or (upstream) are defaults of Node.js or of upstream; the
 * others were chosen for a small shared machine.
 */

const KIB = 1024;
const MIB = 1024 * KIB;
const SECOND = 1000;

export const LIMITS = {
  /** Request line and headers together (Node); a larger request is answered with status 431. */
  headerBytes: 16 * KIB,
  /**
   * Header lines of a request (upstream `http1MaxHeaders`); more are answered with status 431. Node's own limit drops
   * lines silently.
   */
  headerCount: 100,
  connections: 10_000,
  /**
   * Matches of other routes that a regular expression is compared with, when warning about routes that are never
   * reached.
   */
  comparedMatches: 100,
  /**
   * Time until all headers have arrived, until the whole request has arrived, and until an idle connection is closed.
   */
  headersTimeout: 10 * SECOND,
  requestTimeout: 60 * SECOND,
  keepAliveTimeout: 65 * SECOND,
  /** Pipelined requests that may wait on one connection; reading pauses when the queue is full. */
  pipelinedRequests: 16,
  /** How long a connection that we have ended stays open if the client does not close its side. */
  linger: SECOND,
  /**
   * How often Node.js checks connections against these timeouts; with its default of 30 s, a timeout of 10 s could take
   * 40 s.
   */
  connectionsCheckingInterval: SECOND,
  /** A request body up to this size is forwarded in one piece. */
  smallBody: 64 * KIB,
  /**
   * Buffered request body (upstream `maxBufferSize`), also after decompression; a larger one is answered with status
   * 413.
   */
  requestBodyBytes: 2 * MIB,
  /**
   * Nesting of a JSON text. 10^6 nested arrays parse in 263 ms and cannot be serialized again; 128 levels keep parsing
   * under 70 ms.
   */
  jsonDepth: 128,
  /** Members and items of a JSON text: 50,000 short members parse in 28 ms, during which all other requests wait. */
  jsonKeys: 50_000,
  /** Items of a JSON body that is parsed before a rule reads it. Evaluation steps limit `json()` to the same number. */
  jsonItems: 200_000,
  /** Characters of a member's name in an error message: enough to find it, too few to echo a body. */
  shownMemberName: 64,
  /** Parts of a form, and header bytes of one part. 40,000 parts or 300,000 header lines take 0.4 s to parse. */
  formParts: 1_000,
  formHeaderBytes: 4 * KIB,
  /** Nesting of a target's messages; a deeper message fails the call that it answers. */
  targetJsonDepth: 1_000,

  /**
   * A response that the client does not read: the source is paused above `streamHighWaterBytes`, and the connection is
   * destroyed after `writeStall`.
   */
  streamHighWaterBytes: 64 * KIB,
  /**
   * Chunks of one write are coalesced up to this size, which Node.js writes from its stack without allocating memory.
   */
  joinedWriteBytes: 16 * KIB,
  writeStall: 30 * SECOND,
  /**
   * Interval of comment lines on an idle event stream: balancers and clients close streams that are silent for 60 to
   * 300 s.
   */
  heartbeat: 15 * SECOND,

  sessions: 5_000,
  sessionIdle: 30 * 60 * SECOND,
  /** Ids of ended sessions that are remembered so that they are not resumed; beyond that, the oldest is forgotten. */
  endedSessions: 10_000,
  sessionSweep: 30 * SECOND,
  /**
   * Child processes of stdio targets, over all sessions. A new one replaces that of an idle session; if none is idle,
   * the request is answered with status 503.
   */
  children: 64,
  /**
   * How long a session must have been idle before it can be evicted for a new child: two sessions in constant use must
   * not evict each other between requests. A session with an open stream gets longer, because the server may send at
   * any time; clients keep such a stream open for days.
   */
  evictionIdle: SECOND,
  evictionListening: 5 * 60 * SECOND,
  /** How long a new child waits for a free slot, and the polling interval. At most as many wait as there are slots. */
  childSlotWait: 5 * SECOND,
  childSlotLook: 100,
  /**
   * Time for a target to answer `initialize`. Generous, because `npx` may download packages first; the client does not
   * wait that long.
   */
  initializeTimeout: 180 * SECOND,
  /**
   * A session of several targets starts without those that have not answered `initialize` within this time; they join
   * later.
   */
  slowBegin: 2 * SECOND,
  /**
   * A target that does not answer within this time is left out of a list, unless `failureMode` requires an error. A
   * call to a target that is not connected waits as long.
   */
  slowTarget: 10 * SECOND,
  /** Once the first target has answered a list, how much longer the list waits for the others. */
  slowTogether: 2 * SECOND,
  /**
   * A session that requires its only target, or all of its targets, starts or fails within this time: clients give up
   * after 60 s (default of the official SDKs) without a reason. Lists of a session that started without any target wait
   * as long.
   */
  sessionBegin: 55 * SECOND,
  /**
   * One page of a target's list. The client's response leaves that page out earlier (`slowTarget`), unless
   * `failureMode` requires an error.
   */
  listAnswer: 60 * SECOND,
  /** Longest tool name that LLM providers accept (OpenAI, Anthropic); a longer name only causes a warning. */
  llmToolName: 64,
  /** Requests in flight per session; further requests are answered with a JSON-RPC error. */
  inFlightPerSession: 256,
  /**
   * Resource subscriptions of a session at one target that are renewed after the target restarts; beyond that, the
   * oldest is not renewed.
   */
  subscriptions: 1_000,
  /**
   * Unprefixed names: names of one target's list that are remembered for a session. A longer list is not remembered at
   * all.
   */
  listedNames: 50_000,
  /**
   * Minimum interval between two refreshes of the lists, which an unknown name or a target that failed to list
   * triggers.
   */
  relist: 10 * SECOND,
  /** Pages that are requested when a target's list is merged (upstream). */
  listPages: 64,
  /**
   * Notifications, and requests, of targets that are queued for a client without an open stream. Beyond that, the oldest
   * notification is dropped, and a further request is answered with an error.
   */
  queuedMessages: 64,
  /**
   * How long requests of servers wait for a client that is about to open its first stream; a few round trips at most.
   */
  streamOpening: SECOND,
  /**
   * How long a response is held back for answers to requests of other calls on its stream: mcp-go gives up its own
   * after that.
   */
  heldResponse: 30 * SECOND,
  /** One message of a target: a line on stdout, or an event or body over HTTP. */
  targetMessageBytes: 8 * MIB,
  /** Bytes queued for a child that does not read its stdin; more fail the call. */
  childInputBytes: 4 * MIB,
  /**
   * Bytes of process-group ids queued for the watchdog shell, which outlives this process. If the queue is full, the
   * shell is replaced.
   */
  watchdogInputBytes: 64 * KIB,
  /** How long the watchdog shell stays alive without a process to watch. */
  watchdogIdle: 100,
  /**
   * Resources that one session may subscribe to at a shared stdio target; a further subscription is answered with an
   * error.
   */
  sharedSubscriptions: 1_000,
  childErrorBytes: 64 * KIB,
  childErrorLinesPerSecond: 10,
  /** Minimum interval between two log lines about output of a target that is not a message. */
  noiseInterval: 60 * SECOND,
  /** Closing a child: end of stdin, then SIGTERM, then SIGKILL to its process group. */
  childExitGrace: 500,
  childKillGrace: 2 * SECOND,
  /** Backoff before a failed target is tried again: doubles from the first value to the last. */
  retryFirst: 100,
  retryLast: 5 * SECOND,
  /** Failed attempts in a row to resume a response stream: 11 s with the backoff above, long enough for a restart. */
  resumeAttempts: 8,
  /**
   * The `retry` value that clients get for a resumable response stream, and how long a detached stream is kept for
   * them.
   */
  resumeRetry: SECOND,
  resumeWithin: 15 * SECOND,
  /**
   * Resumable response streams per session (further streams are not resumable), and characters of events that are kept
   * for each.
   */
  resumableStreams: 64,
  replayBytes: 64 * KIB,
  /** Upper bound on a server's `retry` value: clients give up after 60 s. */
  streamRetryMax: 60 * SECOND,
  /** Length of a server's event id, which is sent back in a header; a longer id is not remembered. */
  eventIdLength: KIB,
  connectTimeout: 10 * SECOND,
  /**
   * Lookup of an upstream's host name: glibc asks a second time, or another server, after 5 s, and gives up after 10 s.
   */
  hostLookup: 7 * SECOND,
  /** If a lookup takes longer than this, the last known addresses are used (RFC 8767 §5, client response timer). */
  hostLookupPatience: 1_800,
  /** Host names whose addresses are remembered for that; beyond that, the oldest entry is forgotten. */
  lookedUpHosts: 1_000,
  /** Maximum age of a connection to a host name: the name may resolve to another address by then. */
  connectionAge: 60 * SECOND,
  /** How long an MCP server over HTTP may take to send its response headers. */
  upstreamHeadersTimeout: 300 * SECOND,
  /**
   * How long a plain HTTP service may be silent within its response body (same default as Envoy's stream idle timeout).
   * Event streams with the usual keepalive every 15 to 60 s never reach it.
   */
  backendIdle: 300 * SECOND,

  /** extAuthz: response timeout (upstream), and how much of the response body expressions can read. */
  authorizationTimeout: 2 * SECOND,
  authorizationBody: 64 * KIB,
  /**
   * Connections to one authorization service; further requests wait, and the wait counts towards the response timeout.
   */
  authorizationConnections: 256,
  /**
   * Tokens: length in characters; number of validated tokens that are cached per policy, and characters of their
   * payloads together.
   */
  tokenLength: 16 * KIB,
  validTokens: 10_000,
  validTokenCharacters: 16 * MIB,
  /** Identity provider: response timeout; size of its key set, metadata and registration responses. */
  providerTimeout: 5 * SECOND,
  keySetBytes: MIB,
  keys: 100,
  /** RFC 7518 §3.3: "a key of size 2048 bits or larger MUST be used". */
  rsaBits: 2048,
  metadataBytes: 256 * KIB,
  registrationBytes: 64 * KIB,
  /**
   * Client registrations per `registrationsTime`, from one address (an office may share one) and in total; more are
   * answered with status 429. Addresses that are tracked; beyond that, the count of the oldest starts again.
   */
  registrationsPerAddress: 30,
  registrations: 120,
  registrationsTime: 60 * SECOND,
  registrationAddresses: 1_000,
  /**
   * Minimum interval between two refreshes of a key set for an unknown key id, since anyone can send a token with an
   * arbitrary key id.
   */
  keyRefetch: 30 * SECOND,
  /**
   * How long documents of the identity provider are cached: without Cache-Control, and the bounds on what Cache-Control
   * may set.
   */
  documentLifetime: 15 * 60 * SECOND,
  documentLifetimeMin: 60 * SECOND,
  documentLifetimeMax: 24 * 3600 * SECOND,
  /** How long authorization-server metadata is cached. If refreshing it fails, the cached copy is used. */
  serverMetadataLifetime: 5 * 60 * SECOND,
  /**
   * Guardrail webhooks: response timeout (upstream), response size, and length of a rejection message for the client.
   */
  guardrailTimeout: 10 * SECOND,
  /** Connections to one webhook; further calls wait, and the wait counts towards the response timeout. */
  guardrailConnections: 256,
  guardrailBody: 4 * MIB,
  guardrailRejection: 64 * KIB,
  /** Characters of a stream that a guardrail inspects together, and how many are held back for the next inspection. */
  guardrailWindow: KIB,
  guardrailOverlap: 256,
  guardrailHeldBytes: 256 * KIB,
  /**
   * One event of a provider's stream, and the pause between two; beyond either, the stream ends with an error event.
   */
  streamFrameBytes: MIB,
  streamIdle: 60 * SECOND,
  /** Log lines about unknown models: characters of a model name, which the client chooses, and number of names. */
  shownModelName: 100,
  shownModels: 10,
  /** How long a failed model is evicted by default (upstream), and at most. */
  eviction: 3 * SECOND,
  evictionMax: 3600 * SECOND,
  /** A response that is buffered completely, to count its tokens or for guardrails. */
  responseBodyBytes: 8 * MIB,
  /**
   * Ratio of decoded to received bytes of a compressed response whose decoded size exceeds `responseBodyBytes`; beyond
   * that, it is aborted. JSON reaches 5 to 20, deflate at most 1032.
   */
  decodedRatio: 100,
  /**
   * Characters of a prompt, a completion and a tool result that are kept for the access log if an expression of the log
   * reads them. A longer prompt or completion is truncated, a longer tool result is dropped.
   */
  loggedPayload: 256 * KIB,
  /** A model list that prices are imported from (upstream); the public one has 3 MiB. */
  modelListBytes: 64 * MIB,
  /** A price catalog. One with all models of the public list has 1 MiB. */
  priceCatalogBytes: 16 * MIB,
  /** Clients that one rate limit tracks; beyond that, the least recently seen one starts again with a full bucket. */
  rateLimitKeys: 10_000,
  /** 1xx responses of an upstream before its final response; more are answered with status 502. */
  informationalResponses: 100,

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
  /** A stream that follows several requests: how many at once, and for how long. */
  traceFollowed: 64,
  traceFollowTime: 3600 * SECOND,

  /** Access-log and log lines queued for a slow reader of stdout or stderr; further lines are dropped and counted. */
  logQueueBytes: MIB,
  /** Lines are written in batches: once a batch has this many bytes, or after this time. */
  logBatchBytes: 16 * KIB,
  logBatchTime: 20,
  logFieldLength: KIB,
  /**
   * How long a shutdown waits for the last lines to be written. A write that has not returned after `logStall` counts
   * as blocked.
   */
  logFlush: SECOND / 2,
  logStall: SECOND / 4,
  /** Minimum interval between two warnings that access-log lines were lost; the metric has the exact count. */
  logLossWarning: 60 * SECOND,
  /** Call spans per request; spans queued for the collector (more are dropped and counted); spans per export. */
  spansPerRequest: 128,
  spanQueue: 4_096,
  spanBatch: 512,
  /** How often spans are exported, timeout of an export and of the final one, minimum interval between warnings. */
  spanBatchTime: SECOND,
  spanExportTimeout: 5 * SECOND,
  /** Together with `exitGrace` less than 2 s: the longest that an unresponsive collector delays a shutdown. */
  spanFlush: 1_500,
  spanWarning: 60 * SECOND,
  /**
   * Minimum interval between two warnings that the same upstream is unreachable; each request has its own access-log
   * line.
   */
  upstreamWarning: 60 * SECOND,
  /** Label combinations of one metric; further combinations are counted together as `overflow`. */
  metricSeries: 2_000,
  /** Distinct values of one label that clients or providers choose, and their length. */
  metricLabelValues: 300,
  metricLabelLength: 128,
  /** Operator servers (admin, metrics, readiness): concurrent connections, and time for headers (upstream). */
  ownServerConnections: 200,
  ownServerHeadersTimeout: 2 * SECOND,
  /** After SIGTERM: how long open requests may take to finish. */
  drain: 10 * SECOND,
  /**
   * How long a completed shutdown waits for the event loop to become idle, for example for a request to the collector.
   */
  exitGrace: SECOND / 10,
  /** After the drain timeout: how long slow readers may take to receive the error responses. */
  drainGrace: SECOND / 2,
  /**
   * A changed configuration is read once it has not changed for this long (upstream), because editors write in several
   * steps.
   */
  reloadQuiet: 250,
  /**
   * A configuration that keeps changing is read after this long anyway; a file that is written byte by byte is complete
   * by then.
   */
  reloadLongest: 30 * SECOND,
  /**
   * Events of a watched folder are collected for this long before its files are checked; and the polling interval
   * without events.
   */
  watchEvents: 50,
  watchPoll: 2 * SECOND,
  /** Symbolic links that are followed on the way to a watched file (Linux: 40). */
  watchedFolders: 40,
  /** Names and problems of one reload in the log; further ones are only counted. */
  reloadNames: 20,
  reloadProblems: 10,

  /**
   * `agctl check`: timeout of a connection to an LLM provider, and of its answer. Short, because a person waits for it.
   */
  checkConnection: 5 * SECOND,
  checkAnswer: 10 * SECOND,
  /** Targets that `agctl check --start` starts concurrently; `npx` may install packages for each. */
  checkStarts: 4,
  /**
   * How often a command reports progress: on a terminal, where the report is redrawn, and elsewhere, where each report
   * is a line.
   */
  progressTick: SECOND,
  progressLine: 10 * SECOND,

  /** `agctl proxy`: how long an admin server may be silent before it counts as not responding. */
  adminAnswer: 10 * SECOND,
  /** A configuration dump or response of an admin server; V8 cannot hold more than 512 MiB in a string. */
  dumpBytes: 256 * MIB,
  /** Nesting of a dump. Every level is indented, so the cost grows with the square of the depth. */
  dumpDepth: 200,
  /** One event of a trace stream (upstream tests 8 MiB). */
  traceEventLength: 32 * MIB,
  /** Events of a trace that the screen keeps; further events are only counted. */
  traceEvents: 10_000,
  traceKeptLength: 128 * MIB,
  /** Traces that the screen keeps with `--count`; older traces are only counted. */
  traceScreens: 200,
  /** How long the command waits for a request when it does not run on a terminal. */
  traceWait: 60 * SECOND,
  /** How long to wait for the first trace event after a request that the command sent has been answered. */
  traceMissing: 2 * SECOND,
  /** An admin server sends a keepalive every second; after this silence the screen reports that it is missing. */
  traceSilence: 5 * SECOND,
  /** Body of the response to a request that `agctl proxy trace` sends: kept for display, the rest is discarded. */
  traceReplyBytes: 64 * KIB,
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
  playgroundTime: 600 * SECOND,
  /** Longest time after which a temporary log level is reverted. */
  logLevelFor: 24 * 3600 * SECOND,
  /** Characters of the configuration dump that are serialized before other work gets a turn. */
  dumpPiece: 64 * KIB,
  /**
   * Requests kept for the admin server, and bytes of their JSON text together; beyond either, the oldest are dropped.
   * Characters of one request's fields; further fields are left out. Escaped (six times) and as UTF-8 (three times),
   * that is 576 KiB.
   */
  recentRequests: 1_000,
  recentRequestBytes: MIB,
  recentRequestLength: 32 * KIB,
  /** CPU profiles: seconds, and sampling frequency in Hz (upstream). */
  profileSeconds: { min: 1, max: 300, default: 10 },
  profileFrequency: { min: 1, max: 1_000, default: 100 },
  /** Average bytes between two samples of the heap profile (V8's and pprof's default). */
  heapSampleBytes: 512 * KIB,
  heapSampleDepth: 64,
  /** Open requests that `/debug/tasks` lists. */
  listedTasks: 1_000,
  /**
   * Requests (about 1 KiB each) and traces that a page of the admin UI keeps during one visit; beyond that, the oldest
   * are dropped.
   */
  pageRequests: 50_000,
  pageTraces: 50,
} as const;

/** `LIMITS` with other values. Compiled components get their limits from `RuntimeSettings.limits`. */
export type Limits = {
  readonly [Name in keyof typeof LIMITS]: (typeof LIMITS)[Name] extends number
    ? number
    : (typeof LIMITS)[Name];
};
