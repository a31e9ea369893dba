import { KIB, MIB, SECOND } from './units.ts';

/** Limits of the commands: `agctl check`, `agctl proxy`, and those for cassettes. Times are in ms and sizes in bytes unless a comment says otherwise. */
export const COMMANDS_LIMITS = {
  /**
   * `agctl check`: timeout of a connection to an LLM provider, and of its answer. Short, because a person waits for it.
   */
  checkConnectTimeout: 5 * SECOND,
  checkResponseTimeout: 10 * SECOND,
  /** Targets that `agctl check --start` starts concurrently; `npx` may install packages for each. */
  checkStartConcurrency: 4,
  /**
   * How often a command reports progress: on a terminal, where the report is redrawn, and elsewhere, where each report
   * is a line.
   */
  progressIntervalTerminal: SECOND,
  progressIntervalLog: 10 * SECOND,

  /** The file of `--env-from`, which has a line for each of a few variables. */
  envFileBytes: MIB,
  /** Settings file of a client; `~/.claude.json` also has a history of several MB. */
  settingsFileBytes: 32 * MIB,
  /**
   * `server.json` of the MCP registry, or its list of servers; items of one list in it, such as arguments; characters of one
   * text, such as an argument, and of one description.
   */
  serverJsonLength: MIB,
  serverJsonItems: 200,
  serverJsonText: 4_096,
  serverJsonDescription: 200,

  /** `agctl proxy`: how long an admin server may be silent before it counts as not responding. */
  adminResponseTimeout: 10 * SECOND,
  /** How long `logs --follow` and `top` wait before they connect to a gateway again that went away. */
  adminReconnect: SECOND,
  /**
   * `agctl top`: requests that it keeps, and characters of their JSON text; characters of the events of recorded traces.
   * How often it draws new requests, and asks for those in flight.
   */
  topRequests: 10_000,
  topRequestLength: 32 * MIB,
  topTraceLength: 32 * MIB,
  topDrawInterval: SECOND / 4,
  topPollInterval: SECOND,
  /** A configuration dump or response of an admin server; V8 cannot hold more than 512 MiB in a string. */
  dumpBytes: 256 * MIB,
  /** Nesting of a dump. Every level is indented, so the cost grows with the square of the depth. */
  dumpDepth: 200,
  /** Nesting of JSON that an admin server sends or a file has. Functions that print it call themselves. */
  receivedDepth: 1_000,
  /** One event of a trace stream (upstream tests 8 MiB). */
  traceEventLength: 32 * MIB,
  /** Events of a trace that the screen keeps; further events are only counted. */
  traceEvents: 10_000,
  traceKeptLength: 128 * MIB,
  /** Traces that the screen keeps with `--count`; older traces are only counted. */
  traceKeptRequests: 200,
  /** How long the command waits for a request when it does not run on a terminal. */
  traceRequestTimeout: 60 * SECOND,
  /** How long to wait for the first trace event after a request that the command sent has been answered. */
  traceFirstEventTimeout: 2 * SECOND,
  /** How long to wait for the response to such a request after its last trace event. */
  traceReplyTimeout: 2 * SECOND,
  /** An admin server sends a keepalive every second; after this silence the screen reports that it is missing. */
  traceKeepaliveTimeout: 5 * SECOND,
  /** Body of the response to a request that `agctl proxy trace` sends: kept for display, the rest is discarded. */
  traceReplyBytes: 64 * KIB,

  /** `agctl record`: body of a request or response that the cassette keeps. A larger one is only mentioned, and cannot be replayed. */
  cassetteBodyBytes: 16 * MIB,
  /** A cassette that is read. A larger one is refused. */
  cassetteBytes: 256 * MIB,
  /** `agctl replay`: open sessions of MCP clients. Beyond that, the one used least recently ends. */
  cassetteSessions: 1_000,
  /** How long a replayed stream waits for the answer to a request that it has sent to the client. Then the call fails. */
  cassetteAnswerWait: 60 * SECOND,
  /** Differences between a request and a recorded one that are counted, to find the nearest, and that a message lists. */
  cassetteDifferences: 1_000,
  cassetteShownDifferences: 5,
  /**
   * `agctl verify`: time for a request; for one whose client had left, beside the time that it took; and for events of streams
   * without an end, after all other requests have ended.
   */
  verifyTimeout: 120 * SECOND,
  verifyLeaveWait: SECOND,
  verifyStreamWait: 5 * SECOND,
} as const;
