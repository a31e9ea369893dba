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

/** Bounds of the store, of what is read into it, and of what it answers. */
export const MEMORY_STORE_LIMITS = {
  /** Calls waiting for the memory store, and what they carry; more fails at once (503). */
  queue: 4_096,
  queueBytes: 64 * MIB,
  /** Waiting writes that are made durable together; each is acknowledged after that. */
  batch: 256,
  /** Vectors that the embedded store scans for one embedder (1 GiB); more needs PostgreSQL. */
  vectors: 2_000_000,
  /** Rows of one page or list asked of the memory store. */
  page: 5_000,
  /** UTF-8 bytes of an id, and of a name or key: PostgreSQL indexes at most 2,704 bytes, and an edge holds two ids. */
  idBytes: 1_000,
  nameBytes: 2_000,
  /** Agents named for one session in a list. */
  sessionAgents: 50,
  /** Names compared when one was not found. */
  nearNames: 200,
  /** How words were cut into stems, kept for the next query. */
  stems: 10_000,
  /** Connections of one memory backend to PostgreSQL. */
  connections: 10,
  /** Entities with words of a query whose occurrences PostgreSQL counts: those with the most telling words. */
  ranked: 1_000,
  /** Age of a count of all entities in PostgreSQL that is still taken for rarity. */
  countAge: 10 * SECOND,
  /** Time for a connection to PostgreSQL, and for one statement. */
  connect: 5 * SECOND,
  statement: 30 * SECOND,
  /** One document, ingested or in the docs folder. Hostile Markdown of that size is read in 2 s. */
  documentBytes: 2 * MIB,
  /** Files of the docs folder, and folders in each other; more are reported as an error of the sync. */
  documents: 100_000,
  folderDepth: 32,
  /** Documents of a sync on their way at once: four of the longest take half of `queueBytes`. */
  syncTogether: 4,
  /** Errors that a sync reports one by one; more are counted. */
  syncErrors: 50,
  /** Candidates of a search: so many by meaning and so many by words. */
  candidates: 50,
  /** Different words of a query that count; a longer query is taken by its first ones. */
  queryWords: 64,
  queryLength: 2_000,
  results: 50,
  /** Characters of one result: five of them stay far below the 25,000 tokens that clients take. */
  resultLength: 2_000,
  /** Walks through the graph. A hub of 10^5 edges must not become an answer. */
  graphDepth: 5,
  graphNodes: 500,
  graphNodesDefault: 200,
  graphEdges: 2_000,
  /** Remote embeddings: texts and characters of one call, time for its answer, its size, attempts. */
  embeddingInputs: 64,
  embeddingInputLength: 8_000,
  embeddingTimeout: 30 * SECOND,
  embeddingResponseBytes: 16 * MIB,
  embeddingAttempts: 3,
  /** Longest wait that a service may ask for with Retry-After; more fails the call. */
  embeddingRetryAfter: 20 * SECOND,
} as const;
