/**
 * Every bound of the gateway and its commands, once; those of the memory parts are in `memory-limits.ts`. Exceeding one
 * has a stated outcome; nothing grows without a number.
 * Values marked (Node) or (upstream) are theirs, the others were chosen for a small shared machine.
 */

const KIB = 1024;
const MIB = 1024 * KIB;
const SECOND = 1000;

export const LIMITS = {
  /** Request line and headers together (Node's own default); more is 431. */
  headerBytes: 16 * KIB,
  /** Header lines of a request (upstream `http1MaxHeaders`); more is 431. Node's own limit drops lines silently. */
  headerCount: 100,
  connections: 10_000,
  /** Matches of other routes that a regular expression is compared with, to warn of routes that are never reached. */
  comparedMatches: 100,
  /** Time for all headers to arrive, for the whole request, and for an idle connection, in ms. */
  headersTimeout: 10 * SECOND,
  requestTimeout: 60 * SECOND,
  keepAliveTimeout: 65 * SECOND,
  /** Requests of one connection that wait for their turn; more are not read, besides what one read brings. */
  pipelinedRequests: 16,
  /** A connection that we have ended, and that the client leaves open. */
  linger: SECOND,
  /** How often Node looks for connections over those times; its default of 30 s makes 10 s mean 40 s. */
  connectionsCheckingInterval: SECOND,
  /** A request body that is passed on as one piece. */
  smallBody: 64 * KIB,
  /** Buffered request body (upstream `maxBufferSize`), also after decompression; more is 413. */
  requestBodyBytes: 2 * MIB,
  /** A JSON text of 10^6 nested arrays parses in 263 ms and cannot be printed again; 128 keeps parsing under 70 ms. */
  jsonDepth: 128,
  /** Members and items of a JSON text: 50,000 short members parse in 28 ms, and that blocks all others. */
  jsonKeys: 50_000,
  /** Items of a JSON body that is parsed before a rule asks for it: `json()` takes no more, by the steps it may take. */
  jsonItems: 200_000,
  /** Characters of a member's name in an error that names it: enough to find it, and no way to echo a body. */
  shownMemberName: 64,
  /** A form: its parts, and bytes of headers of one. 40,000 parts or 300,000 header lines take 0.4 s to parse. */
  formParts: 1_000,
  formHeaderBytes: 4 * KIB,
  /** Nesting of a target's messages; a deeper one fails the call it answers. */
  targetJsonDepth: 1_000,

  /** A response that the client does not read: pause the source over this, destroy after that long. */
  streamHighWaterBytes: 64 * KIB,
  /** Pieces of one write are joined up to this: what Node.js writes from its stack, without memory of its own for it. */
  joinedWriteBytes: 16 * KIB,
  writeStall: 30 * SECOND,
  /** Comment line on an idle event stream: balancers and clients drop streams silent for 60 to 300 s. */
  heartbeat: 15 * SECOND,

  sessions: 5_000,
  sessionIdle: 30 * 60 * SECOND,
  /** Ids of ended sessions kept, so that they are not resumed; the oldest is forgotten. */
  endedSessions: 10_000,
  sessionSweep: 30 * SECOND,
  /** Child processes of stdio targets, over all sessions; a new one takes the place of an idle session's, or is 503. */
  children: 64,
  /**
   * How long after its last request a session counts as idle then: two sessions that are used all the time must not evict
   * each other between requests. One that listens is about to be told something; clients keep such a stream for days.
   */
  evictionIdle: SECOND,
  evictionListening: 5 * 60 * SECOND,
  /** How long a new child waits for a place, and how often it looks meanwhile. As many as there are places wait at once. */
  childSlotWait: 5 * SECOND,
  childSlotLook: 100,
  /** Time for a target to answer `initialize`; generous, because `npx` may download first. The client need not wait so long. */
  initializeTimeout: 180 * SECOND,
  /** A session of several targets begins without those that have not answered `initialize` by then; they join later. */
  slowBegin: 2 * SECOND,
  /**
   * A target that has not answered by then is left out of a list, unless failure is to be seen. A call of a target that
   * is not connected waits as long.
   */
  slowTarget: 10 * SECOND,
  /** A list that had to wait for the first target to be up waits so much longer for the others. */
  slowTogether: 2 * SECOND,
  /**
   * A session that needs its only target, or all of them, begins by then or fails: clients give up after 60 s (default of
   * the official SDKs), and learn nothing. Lists of a session that began without any target wait as long.
   */
  sessionBegin: 55 * SECOND,
  /** A page of a target's list that is merged. The client is answered without it before, unless failure is to be seen. */
  listAnswer: 60 * SECOND,
  /** Longest name of a tool that providers of LLMs take (OpenAI, Anthropic); a longer one is only warned of. */
  llmToolName: 64,
  /** Requests in flight per session; more is a JSON-RPC error. */
  inFlightPerSession: 256,
  /** Resource subscriptions of a session at one target that are renewed after its restart; the oldest is not. */
  subscriptions: 1_000,
  /** Names without prefix: names of one list of a target that are remembered for a session; with more, none are. */
  listedNames: 50_000,
  /** And how often a name that no list has, or a target that could not list, makes a session ask for the lists again. */
  relist: 10 * SECOND,
  /** Pages followed when a target's list is merged (upstream). */
  listPages: 64,
  /** Messages of targets kept for a client without an open stream: the oldest notification is dropped, one request more gets an error. */
  queuedMessages: 64,
  /** How long requests of servers wait for a client that has just begun to open its first stream; at most some round trips. */
  streamOpening: SECOND,
  /** How long a response waits for answers to requests of other calls on its stream: mcp-go gives up its own after that. */
  heldResponse: 30 * SECOND,
  /** One message of a target: a line on stdout, or one event or body over HTTP. */
  targetMessageBytes: 8 * MIB,
  /** Bytes waiting for a child that does not read its stdin; more fails the call. */
  childInputBytes: 4 * MIB,
  /** Names of process groups that wait for the shell that outlives us; with more, it is replaced. */
  watchdogInputBytes: 64 * KIB,
  /** How long that shell stays without a process to watch. */
  watchdogIdle: 100,
  /** Resources that one session may subscribe to at a shared stdio target; more is an error. */
  sharedSubscriptions: 1_000,
  childErrorBytes: 64 * KIB,
  childErrorLinesPerSecond: 10,
  /** Time between two lines in the log on what a target sends that is not a message. */
  noiseInterval: 60 * SECOND,
  /** Closing a child: stdin end, then SIGTERM, then SIGKILL to its process group. */
  childExitGrace: 500,
  childKillGrace: 2 * SECOND,
  /** Wait before a target that failed is tried again: doubles from the first to the last. */
  retryFirst: 100,
  retryLast: 5 * SECOND,
  /** Failed attempts in a row to resume a response stream: 11 s with the waits above, as a restart may take. */
  resumeAttempts: 8,
  /** What clients are told to wait before they resume a response stream, and how long they can before it is given up. */
  resumeRetry: SECOND,
  resumeWithin: 15 * SECOND,
  /** Response streams of a session that can be resumed; more are plain ones. Characters of events kept for each. */
  resumableStreams: 64,
  replayBytes: 64 * KIB,
  /** The longest `retry` of a server that is honoured: clients give up after 60 s. */
  streamRetryMax: 60 * SECOND,
  /** Event ids of a server are sent back in a header; a longer one is not remembered. */
  eventIdLength: KIB,
  connectTimeout: 10 * SECOND,
  /** A host name of an upstream: glibc asks a second time, or another server, after 5 s, and gives up after 10 s. */
  hostLookup: 7 * SECOND,
  /** The last addresses of a host are used when it takes longer to look them up (RFC 8767 §5, client response timer). */
  hostLookupPatience: 1_800,
  /** Host names whose addresses are remembered for that; the one that came first is forgotten. */
  lookedUpHosts: 1_000,
  /** A connection to a host name is not used for longer: what the name leads to may have changed. */
  connectionAge: 60 * SECOND,
  /** Silence of an MCP server over HTTP before its response headers. */
  upstreamHeadersTimeout: 300 * SECOND,
  /**
   * Silence of a plain HTTP service inside its response body (Envoy's stream idle timeout has the same default). Event
   * streams with a sign of life every 15 to 60 s, as is usual, never come near it.
   */
  backendIdle: 300 * SECOND,

  /** extAuthz: time for an answer (upstream), and how much of its body expressions may read. */
  authorizationTimeout: 2 * SECOND,
  authorizationBody: 64 * KIB,
  /** Connections to one authorization service; more requests wait, within the time for an answer. */
  authorizationConnections: 256,
  /** Tokens: length in characters; validated ones remembered per policy, and characters of their payloads together. */
  tokenLength: 16 * KIB,
  validTokens: 10_000,
  validTokenCharacters: 16 * MIB,
  /** Identity provider: time for an answer; size of its key set, metadata and registration answers. */
  providerTimeout: 5 * SECOND,
  keySetBytes: MIB,
  keys: 100,
  /** RFC 7518 §3.3: "a key of size 2048 bits or larger MUST be used". */
  rsaBits: 2048,
  metadataBytes: 256 * KIB,
  registrationBytes: 64 * KIB,
  /**
   * Registrations of clients in that time, of one address (an office behind one) and of all; more are 429. And addresses
   * that are told apart; the one that came first starts anew.
   */
  registrationsPerAddress: 30,
  registrations: 120,
  registrationsTime: 60 * SECOND,
  registrationAddresses: 1_000,
  /** An unknown key id makes the key set be read again, but not more often than this: token ids are anybody's to choose. */
  keyRefetch: 30 * SECOND,
  /** How long documents of the provider are used: without Cache-Control, and at least and at most with it. */
  documentLifetime: 15 * 60 * SECOND,
  documentLifetimeMin: 60 * SECOND,
  documentLifetimeMax: 24 * 3600 * SECOND,
  /** Authorization-server metadata is fetched again after this; a failing fetch serves the last one. */
  serverMetadataLifetime: 5 * 60 * SECOND,
  /** Guardrail webhooks: time for an answer (upstream), its size, and the length of a rejection for the client. */
  guardrailTimeout: 10 * SECOND,
  /** Connections to one webhook; more calls wait, within the time for an answer. */
  guardrailConnections: 256,
  guardrailBody: 4 * MIB,
  guardrailRejection: 64 * KIB,
  /** Characters of a stream that a guardrail looks at together, and those of them kept back for its next look. */
  guardrailWindow: KIB,
  guardrailOverlap: 256,
  guardrailHeldBytes: 256 * KIB,
  /** One event of a provider's stream, and silence between two; then the stream ends with an error event. */
  streamFrameBytes: MIB,
  streamIdle: 60 * SECOND,
  /** What the log says of a model that nobody has: characters of a name, which is the client's, and how many there are. */
  shownModelName: 100,
  shownModels: 10,
  /** How long a model that failed is left alone when nothing else is said (upstream), and at most. */
  eviction: 3 * SECOND,
  evictionMax: 3600 * SECOND,
  /** A response that is read whole: to count its tokens, or for guardrails. */
  responseBodyBytes: 8 * MIB,
  /** A compressed answer over that size may be so many times as long decoded: JSON has 5 to 20, deflate at most 1032. */
  decodedRatio: 100,
  /**
   * Characters of a prompt, of a completion, and of a tool's result that are kept until the log is written, where an
   * expression of the log reads them. Of a longer prompt or completion the beginning is kept, of a longer result nothing.
   */
  loggedPayload: 256 * KIB,
  /** A list of models that prices are imported from (upstream); the public one has 3 MiB. */
  modelListBytes: 64 * MIB,
  /** A price catalog. That of all models of the public list has 1 MiB. */
  priceCatalogBytes: 16 * MIB,
  /** Clients of one rate limit that are told apart; beyond, the one seen longest ago starts anew. */
  rateLimitKeys: 10_000,
  /** 1xx responses of an upstream before its real one; more is 502. */
  informationalResponses: 100,

  /** `/debug/trace`: streams at once (more are refused), and events and bytes that wait for the reader of one of them. */
  traceWatchers: 1_000,
  traceQueueEvents: 2_000,
  traceQueueBytes: 4 * MIB,
  /** Of a body in a trace; texts, and texts together, of the variables at one stage or under one expression. */
  traceBodyBytes: 64 * KIB,
  traceTextLength: 8 * KIB,
  traceStateLength: 64 * KIB,
  traceCelStateLength: 8 * KIB,
  /** Parts of an expression whose values are shown. */
  traceCelParts: 32,
  /** Readers of `/debug/trace` count on a sign of life every second. */
  traceKeepalive: SECOND,
  /** A stream that follows many requests: how many at once, and for how long. */
  traceFollowed: 64,
  traceFollowTime: 3600 * SECOND,

  /** Access-log and log lines waiting for a slow reader of stdout or stderr; more are dropped and counted. */
  logQueueBytes: MIB,
  /** Lines are written together: when there are so many bytes, or after so long. */
  logBatchBytes: 16 * KIB,
  logBatchTime: 20,
  logFieldLength: KIB,
  /** A stop waits so long for the last lines to be taken. A write that has not returned for the other time is blocked. */
  logFlush: SECOND / 2,
  logStall: SECOND / 4,
  /** Time between two warnings that access-log lines were lost; the metric has the exact count. */
  logLossWarning: 60 * SECOND,
  /** Spans of calls for one request; spans waiting for the collector (more are lost and counted); of one export. */
  spansPerRequest: 128,
  spanQueue: 4_096,
  spanBatch: 512,
  /** In ms: how often spans leave, how long one export and the last ones at the end may take, time between warnings. */
  spanBatchTime: SECOND,
  spanExportTimeout: 5 * SECOND,
  /** With `exitGrace` under 2 s: a stop is delayed by no more when the collector does not answer. */
  spanFlush: 1_500,
  spanWarning: 60 * SECOND,
  /** Time between two warnings that the same upstream cannot be reached: each request has its access-log line. */
  upstreamWarning: 60 * SECOND,
  /** Label combinations of one metric; what comes after is counted together as `overflow`. */
  metricSeries: 2_000,
  /** Values of one label that clients or providers choose, and their length. */
  metricLabelValues: 300,
  metricLabelLength: 128,
  /** Servers for operators (admin, metrics, readiness): connections at once, and time for headers (upstream). */
  ownServerConnections: 200,
  ownServerHeadersTimeout: 2 * SECOND,
  /** SIGTERM: how long open requests may take to finish. */
  drain: 10 * SECOND,
  /** A stop is complete, and something still keeps the event loop, such as a call of the collector: it is not waited for. */
  exitGrace: SECOND / 10,
  /** After that: how long the errors that say so may take to reach clients that read slowly. */
  lastWords: SECOND / 2,
  /** A changed configuration is read when it was quiet for so long (upstream), as editors write in several steps. */
  reloadQuiet: 250,
  /** One that is never quiet is read after that long all the same; a file that is written byte by byte is whole by then. */
  reloadLongest: 30 * SECOND,
  /** Events of a watched folder are gathered before its files are looked at; and a look without any event. */
  watchEvents: 50,
  watchPoll: 2 * SECOND,
  /** Symbolic links followed on the way to a watched file (Linux: 40). */
  watchedFolders: 40,
  /** Names, and problems, of one reload in the log; more are counted. */
  reloadNames: 20,
  reloadProblems: 10,

  /** `agctl check`: a connection to a provider of models, and its answer to a question for them; people wait for it. */
  checkConnection: 5 * SECOND,
  checkAnswer: 10 * SECOND,
  /** Targets that `agctl check --start` starts at once: npx of each may install packages. */
  checkStarts: 4,
  /** How often a command says what it waits for, where that can be drawn over, and where it is a line each time. */
  progressTick: SECOND,
  progressLine: 10 * SECOND,

  /** `agctl proxy`: silence of an admin server before it counts as not answering. */
  adminAnswer: 10 * SECOND,
  /** A configuration dump or answer of an admin server that is read; V8 cannot hold more than 512 MiB in a string. */
  dumpBytes: 256 * MIB,
  /** Nesting of a dump; every level is indented, so depth costs its square. */
  dumpDepth: 200,
  /** One event of a trace stream (upstream tests 8 MiB). */
  traceEventLength: 32 * MIB,
  /** Events of a trace kept for the screen; the later ones are counted only. */
  traceEvents: 10_000,
  traceKeptLength: 128 * MIB,
  /** Traces kept for the screen of `--count`; of earlier ones only that they were there. */
  traceScreens: 200,
  /** Waiting for a request when nobody sits at a terminal. */
  traceWait: 60 * SECOND,
  /** A request that the command sent has been answered, and no event has come. */
  traceMissing: 2 * SECOND,
  /** An admin server sends a sign of life every second; after this long the screen says that it is missing. */
  traceSilence: 5 * SECOND,
  /** Body of the answer to a request that `agctl proxy trace` sends: kept to show, the rest is read and dropped. */
  traceReplyBytes: 64 * KIB,
  /** Admin server: time for a whole request, and for an idle connection. */
  adminRequestTimeout: 10 * SECOND,
  adminKeepAlive: 5 * SECOND,
  adminCheckingInterval: 500,
  /** Answers under way when the admin server closes. */
  adminDrain: SECOND,
  adminHeaderBytes: 16 * KIB,
  /** A configuration to validate, or an expression with its sample; more is 413. Parsing so much takes the loop under 1 s. */
  adminBody: MIB,
  /** Open event streams of the admin server (traces, requests); more are 503. */
  adminStreams: 64,
  /** A page tries a request at the gateway: headers of it, its answer (the rest is cut off), time for all of it. */
  playgroundHeaders: 32,
  playgroundReplyBytes: 16 * MIB,
  playgroundTime: 600 * SECOND,
  /** Log levels that were changed for a while come back after this at the latest. */
  logLevelFor: 24 * 3600 * SECOND,
  /** Characters of the configuration dump that are made before other work has its turn. */
  dumpPiece: 64 * KIB,
  /**
   * Requests kept for the admin server, and bytes of their JSON text together: the oldest are dropped. Characters of one
   * request's fields: the rest of them is left out. Escaped (six times) and as UTF-8 (three times) that is 576 KiB.
   */
  recentRequests: 1_000,
  recentRequestBytes: MIB,
  recentRequestLength: 32 * KIB,
  /** CPU profiles: seconds and sampling frequency (upstream). */
  profileSeconds: { min: 1, max: 300, default: 10 },
  profileFrequency: { min: 1, max: 1_000, default: 100 },
  /** Average bytes between two samples of the heap profile (V8's and pprof's default). */
  heapSampleBytes: 512 * KIB,
  heapSampleDepth: 64,
  /** Open requests listed by `/debug/tasks`. */
  listedTasks: 1_000,
  /** A page of the admin UI keeps so many requests (about 1 KiB each), and traces of one visit; the oldest go. */
  pageRequests: 50_000,
  pageTraces: 50,
} as const;
