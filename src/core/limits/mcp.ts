import { KIB, MIB, SECOND } from './units.ts';

/** Limits of MCP sessions, streams and stdio children. Times are in ms and sizes in bytes unless a comment says otherwise. */
export const MCP_LIMITS = {
  /**
   * Interval of comment lines on an idle event stream: balancers and clients close streams that are silent for 60 to
   * 300 s.
   */
  heartbeat: 15 * SECOND,

  sessions: 5_000,
  sessionIdle: 30 * 60 * SECOND,
  /**
   * Sessions of a backend whose clients left before their `initialize` was answered, and how long each is kept for the next attempt
   * of its client: `npx` may download a package for a minute. Their processes are stopped before any session is evicted.
   */
  keptStarts: 16,
  keptStartTime: 60 * SECOND,
  /** Ids of ended sessions that are remembered so that they are not resumed; beyond that, the oldest is forgotten. */
  endedSessions: 10_000,
  /**
   * Characters of the client's `initialize` parameters that a session id contains; longer ones are left out, and the
   * session ends with 404 if a target forgets it after a restart of the gateway. Parameters with client name and all
   * capabilities have about 200. Keeps ids of backends with two targets under 1 KiB: servers limit headers to 8 KiB.
   */
  sealedInitializeLength: 400,
  /** Records of sessions in the shared store have them up to this length. */
  recordedInitializeLength: 16 * KIB,
  /** How long a replica may go on with a session that another one has ended; each check is one command. */
  sessionCheckInterval: SECOND,
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
  childSlotTimeout: 5 * SECOND,
  childSlotPollInterval: 100,
  /**
   * Time for a target to answer `initialize`. Generous, because `npx` may download packages first; the client does not
   * wait that long.
   */
  initializeTimeout: 180 * SECOND,
  /**
   * Time for a target to answer `server/discover` before it is sent `initialize` as well: servers of the older
   * revisions may ignore a request before `initialize` (2026-07-28, "stdio", "Backward Compatibility").
   */
  discoverTimeout: 5 * SECOND,
  /**
   * How long a target is known to accept only the revisions with `initialize`: it is not asked again for each caller,
   * but an update of a remote server is noticed.
   */
  legacyTargetMemory: 10 * 60 * SECOND,
  /**
   * How long a call at a target waits for the client's input, which the client sends with another request; the user may
   * have to answer. Then the call is cancelled.
   */
  inputTimeout: 10 * 60 * SECOND,
  /** Calls per caller and target that wait for input; a further one cancels the oldest. */
  callsAwaitingInput: 64,
  /** Times that one call may request input from the client, before it fails: a server may never be satisfied. */
  inputRounds: 32,
  /**
   * A session of several targets starts without those that have not answered `initialize` within this time; they join
   * later.
   */
  slowTargetStartWait: 2 * SECOND,
  /**
   * A target that does not answer within this time is left out of a list, unless `failureMode` requires an error. A
   * call to a target that is not connected waits as long.
   */
  targetResponseWait: 10 * SECOND,
  /** Once the first target has answered a list, how much longer the list waits for the others. */
  listGracePeriod: 2 * SECOND,
  /**
   * A session that requires its only target, or all of its targets, starts or fails within this time: clients give up
   * after 60 s (default of the official SDKs) without a reason. Lists of a session that started without any target wait
   * as long.
   */
  sessionStartTimeout: 55 * SECOND,
  /**
   * One page of a target's list. The client's response leaves that page out earlier (`targetResponseWait`), unless
   * `failureMode` requires an error.
   */
  listPageTimeout: 60 * SECOND,
  /** Longest tool name that LLM providers accept (OpenAI, Anthropic); a longer name only causes a warning. */
  llmToolName: 64,
  /**
   * Rests of results that were cut (`maxResultTokens`) per session, their bytes, and those of all sessions; beyond that, the oldest
   * is dropped. A model reads on in the result that it was just given, so a session needs few. One result is at most a message.
   */
  keptResults: 32,
  keptResultBytes: 8 * MIB,
  allKeptResultBytes: 128 * MIB,
  /** Requests in flight per session; further requests are answered with a JSON-RPC error. */
  inFlightPerSession: 256,
  /**
   * Resource subscriptions of a session at one target, or of one `subscriptions/listen` request, and characters of their
   * URIs. Beyond that, a further subscription is answered with an error; at a target with a process or session of its own,
   * the oldest is not renewed after a restart.
   */
  subscriptions: 1_000,
  subscriptionCharacters: 256 * KIB,
  /**
   * Unprefixed names: names of one target's list that are remembered for a session. A longer list is not remembered at
   * all.
   */
  listedNames: 50_000,
  /**
   * Minimum interval between two refreshes of the lists, which an unknown name or a target that failed to list
   * triggers.
   */
  relistInterval: 10 * SECOND,
  /**
   * How long calls rely on the last list of the tools (`toolPinning: enforce`). Not every client is notified of changes: since
   * revision 2026-07-28 only those with `subscriptions/listen`, before it only those with a GET stream over HTTP.
   */
  pinVerdictAge: 60 * SECOND,
  /** The same for searches (`toolSearch`). */
  toolListAge: 60 * SECOND,
  /** Names of the tools of one target in `/api/overview`. */
  shownTools: 500,
  /** Changed tools of a target that the admin server names. */
  shownToolChanges: 200,
  /**
   * Tool pinning: pinned tools per target (with `enforce`, others are hidden); JSON characters of a definition that is kept
   * beside its hash; size of the file, which otherwise gets the hashes only.
   */
  pinnedTools: 1_000,
  pinnedDefinition: 16 * KIB,
  toolPinsBytes: 8 * MIB,
  /**
   * Characters of a message that patterns of a guardrail check; a longer one is rejected. Checking blocks the event loop:
   * with all builtins, 1 MiB of prose takes 10 ms, of digits 0.5 s; a pattern of the configuration 0.1 to 0.4 s.
   */
  guardedCharacters: MIB,
  /** Pages that are requested when a target's list is merged (upstream). */
  listPages: 64,
  /** Characters of a cursor of a target's list, as JSON; a list ends before a longer one. Cursors are tokens of some 100. */
  cursorLength: 64 * KIB,
  /**
   * Notifications, and requests, of targets that are queued for a client without an open stream. Beyond that, the oldest
   * notification is dropped, and a further request is answered with an error.
   */
  queuedMessages: 64,
  /**
   * How long requests of servers wait for a client that is about to open its first stream; a few round trips at most.
   */
  firstStreamWait: SECOND,
  /**
   * How long a response is held back for answers to requests of other calls on its stream: mcp-go gives up its own
   * after that.
   */
  heldResponseTimeout: 30 * SECOND,
  /** The same for requests that clients answer without asking their user, and for those that were sent before any call. */
  heldForRootsTimeout: SECOND,
  /** One message of a target: a line on stdout, or an event or body over HTTP. */
  targetMessageBytes: 8 * MIB,
  /**
   * Elements of the lists in a result that are replaced or left out because clients cannot read them; a result with more stays as
   * sent. Blocks the event loop: 10,000 links without a name take 65 ms, and 2 million numbers took 2 s and became 13 times as long.
   */
  repairedElements: 10_000,
  /** Messages in one array of a target, which revision 2025-03-26 allows instead of one message. */
  targetBatch: 256,
  /** Redirects of a target that one request follows; a trailing slash takes one. */
  targetRedirects: 5,
  /**
   * How long a line or message of a child may pause before it counts as ended: some servers write no last line break, and
   * some print JSON on several lines.
   */
  unfinishedMessageWait: SECOND,
  /** How long a call waits for its response after a line that has it after other text: servers log what they send next. */
  loggedAnswerWait: 0.5 * SECOND,
  /** Bytes queued for a child that does not read its stdin; more fail the call. */
  childInputBytes: 4 * MIB,
  /**
   * Bytes of process-group ids queued for the watchdog shell, which outlives this process. If the queue is full, the
   * shell is replaced.
   */
  watchdogInputBytes: 64 * KIB,
  /** How long the watchdog shell stays alive without a process to watch. */
  watchdogIdle: 100,
  childErrorBytes: 64 * KIB,
  childErrorLinesPerSecond: 10,
  /** Minimum interval between two log lines about output of a target that is not a message. */
  invalidMessageLogInterval: 60 * SECOND,
  /** Closing a child: end of stdin, then SIGTERM, then SIGKILL to its process group. */
  childExitGrace: 500,
  childKillGrace: 2 * SECOND,
  /** Backoff before a failed target is tried again: doubles from the first value to the last. */
  retryDelayMin: 100,
  retryDelayMax: 5 * SECOND,
  /** The same for processes that were started in advance (`stdio.warm`): no client waits for them. */
  warmRetryMax: 60 * SECOND,
  /** Failed attempts in a row to resume a response stream: 11 s with the backoff above, long enough for a restart. */
  resumeAttempts: 8,
  /** How long a call may take before its response head is sent without an event. Until then it may get a status. */
  responseHeadAfter: 2 * SECOND,
  /**
   * The same for a call to a target that cannot reject it with an HTTP status, such as a child process or a server that has
   * begun its event stream: the client should soon have a stream that it can resume, while the response to a short call is still
   * one event in one write.
   */
  resumableHeadAfter: 25,
  /**
   * The `retry` value that clients get for a resumable stream, and how long a detached stream is kept for
   * them.
   */
  resumeRetry: SECOND,
  /**
   * What clients of a gateway that is shutting down are told to wait, for the next one to be there: the official SDKs give up
   * after two attempts.
   */
  drainRetry: 5 * SECOND,
  resumeTimeout: 15 * SECOND,
  /**
   * Resumable streams per session (further streams are not resumable), and characters of events that are kept
   * for each.
   */
  resumableStreams: 64,
  replayBytes: 64 * KIB,
  /** The same for the GET stream of a session, whose messages are short. Thousands of sessions have one. */
  serverReplayBytes: 16 * KIB,
  /** Upper bound on a server's `retry` value: clients give up after 60 s. */
  streamRetryMax: 60 * SECOND,
  /** How long the process of a stdio target runs without a request with `statefulMode: stateless`. */
  statelessIdle: 5 * 60 * SECOND,
  /** Length of a server's event id, which is sent back in a header; a longer id is not remembered. */
  eventIdLength: KIB,
} as const;
