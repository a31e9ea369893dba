// Bounds of the memory adapter, its backend and its dashboard, as `limits.ts` has those of the gateway.

const KIB = 1024;
const MIB = 1024 * KIB;
const SECOND = 1000;

/** Bounds of the memory adapter and of its backend's REST interface. */
export const MEMORY_API_LIMITS = {
  /** Body of one MCP message: a document of 2 MB, escaped as JSON, fits. */
  mcpBodyBytes: 4 * MIB,
  /** Body of one REST request, for the same reason. */
  requestBytes: 4 * MIB,
  /** A reply of the backend; a longer one is not one of ours. */
  replyBytes: 8 * MIB,
  /** Connections from an adapter to its backend; further calls wait within their own time. */
  backendConnections: 64,
  /** Time for a connection, an answer, and an answer to an ingestion: MCP clients commonly give up after 60 s. */
  connectTimeout: 2 * SECOND,
  callTimeout: 10 * SECOND,
  ingestTimeout: 50 * SECOND,
  /** An ingestion answers after this, with the sync still running (202). */
  syncWait: 25 * SECOND,
  /** Wait before the one retry, and as much again at random, so that callers do not return together. */
  retryDelay: 200,
  /** Characters of a backend's own message that reach the client. */
  errorTextLength: 500,
  /** Edges that a tool hands to a model, far below the 25,000 tokens that clients take. */
  toolEdges: 400,
  /** One chat turn; more is 413. */
  turnBytes: 64 * KIB,
  /** Characters of session, agent and document names. */
  nameLength: 512,
  /** Entries of one page of sessions, turns or nodes. */
  pageSize: 500,
  /** Chat turns being made findable at a time; the next one waits. */
  turnsIndexing: 64,
  /** How often a running sync says how far it has come. */
  syncReport: 2 * SECOND,
  /** Requests that the backend answers at a time; more is 503. */
  requestsInFlight: 256,
} as const;

/** The pages of the memory dashboard, which hold in a browser what they show. */
export const MEMORY_PAGE_LIMITS = {
  /** Nodes and relations of one drawing; more could neither be drawn in time nor told apart. */
  graphNodes: 5_000,
  graphEdges: 20_000,
  /** Table rows at a time; a page of more cannot be read through. */
  tableRows: 100,
  /** Entries of one page of sessions. */
  sessions: 50,
  /** Characters of one text that are shown before being asked for more, and each time. */
  shownText: 10_000,
  /** Characters of one session's turns that a page keeps; the rest is said to be missing. */
  sessionText: 64 * MIB,
  /** Turns of one request: few until it is known that they are small, for they may have 64 KiB each. */
  turnsFirst: 50,
  turnsMore: 500,
  /** Longest wait between two turns of a replay, in ms, and the shortest. */
  replayGap: 2_000,
  replayStep: 40,
} as const;
