// Bounds of the memory adapter, its backend and its dashboard. Times are in ms and sizes in bytes, as in `limits.ts`.

const KIB = 1024;
const MIB = 1024 * KIB;
const SECOND = 1000;

/** Bounds of the memory adapter and of its backend's REST interface. */
export const MEMORY_API_LIMITS = {
  /** Body of one MCP message: large enough for a document of 2 MB, escaped as JSON. */
  mcpBodyBytes: 4 * MIB,
  /** One MCP message over stdio: a document of 2 MB in which each character is escaped. */
  stdioLineBytes: 12 * MIB + 64 * KIB,
  /** Body of one REST request, for the same reason. */
  requestBytes: 4 * MIB,
  /** Body of one import request; a document of 2 MB has more lines and members there. */
  importBytes: 16 * MIB,
  /** Lines and bytes that `agctl memory import` sends together. */
  importLines: 500,
  importBatch: MIB,
  /** A response of the backend; a longer one did not come from this backend. */
  replyBytes: 8 * MIB,
  /** Connections from an adapter to its backend; further calls wait, and the wait counts towards their timeout. */
  backendConnections: 64,
  /** Timeout of a connection, of a call, and of an ingestion: MCP clients commonly give up after 60 s. */
  connectTimeout: 2 * SECOND,
  callTimeout: 10 * SECOND,
  ingestTimeout: 50 * SECOND,
  /** If a sync takes longer than this, the ingestion is answered with status 202 while the sync continues. */
  syncWait: 25 * SECOND,
  /** Delay before the only retry, plus up to the same at random, so that callers do not retry simultaneously. */
  retryDelay: 200,
  /** Characters of a backend's own error message that reach the client. */
  errorTextLength: 500,
  /** Edges in a tool result, far below the 25,000 tokens that clients accept. */
  toolEdges: 400,
  /** Turns in a tool result. */
  toolTurns: 100,
  /** One chat turn; a larger one is answered with status 413. */
  turnBytes: 64 * KIB,
  /** Characters of session, agent and document names. */
  nameLength: 512,
  /** Entries of one page of sessions, turns or nodes. */
  pageSize: 500,
  /** Chat turns that are indexed concurrently; the next one waits. */
  indexingConcurrency: 64,
  /** Keys in the file of namespace keys. */
  namespaceKeys: 100_000,
  /** A change of that file takes effect after at most this time: a file system may be asked so often. */
  keysMaxAge: SECOND,
  /** Interval of progress lines of a running sync. */
  syncReport: 2 * SECOND,
  /** Delay before the first sync is repeated if it fails, doubled each time up to the second value. */
  syncRetry: 5 * SECOND,
  syncMaxRetry: 300 * SECOND,
  /** How long after a change in the docs folder a sync begins: editors and `git` write in several steps. */
  docsQuiet: SECOND / 2,
  /** How often it is looked whether another folder is at the path of the docs folder. */
  docsLook: SECOND,
  /** Concurrent requests of the backend; more are answered with status 503. */
  requestsInFlight: 256,
} as const;

/** Bounds of the memory dashboard, which keeps the displayed data in the browser. */
export const MEMORY_PAGE_LIMITS = {
  /** Nodes and relations of one drawing; more could neither be drawn fast enough nor be distinguished. */
  graphNodes: 5_000,
  graphEdges: 20_000,
  /** Table rows per page. */
  tableRows: 100,
  /** Entries of one page of sessions. */
  sessions: 50,
  /** Characters of one text that are shown at first, and added by each "show more". */
  shownText: 10_000,
  /** Characters of one session's turns that a page keeps; a notice replaces the rest. */
  sessionText: 64 * MIB,
  /** Turns per request. The first request is small, because turns may have 64 KiB each. */
  turnsFirst: 50,
  turnsMore: 500,
  /** Longest and shortest pause between two turns of a replay. */
  replayGap: 2_000,
  replayStep: 40,
} as const;

/** Bounds of the store, its input and its results. */
export const MEMORY_STORE_LIMITS = {
  /** Calls queued for the memory store, and bytes that they carry; a further call is answered with status 503. */
  queue: 4_096,
  queueBytes: 64 * MIB,
  /** Queued writes that are committed together; each is acknowledged after the commit. */
  batch: 256,
  /**
   * Characters of a namespace's name: encoded as a folder, each may take three, and file systems allow 255 bytes.
   */
  namespaceLength: 80,
  /** Namespaces of one store; a write to a further one is refused. */
  namespaces: 10_000,
  /**
   * Files of namespaces that the embedded store keeps open, besides the default one: each has up to 16 MiB of page
   * cache. All open files together keep at most so many bytes of vectors; the least recently used file is closed.
   */
  openNamespaces: 32,
  openVectorBytes: 1024 * MIB,
  /** Namespaces whose tasks (indexing, embedding again) the backend keeps; idle ones are dropped first. */
  activeNamespaces: 256,
  /** Vectors that the embedded store scans for one embedder: 4 million of 128 numbers; more require PostgreSQL. */
  vectorBytes: 512 * MIB,
  /** Vectors that it compares exactly, besides those that are returned, if so many are about equally near. */
  comparedVectors: 1_000,
  /** Numbers of one vector: the most that pgvector stores. */
  dimensions: 16_000,
  /** A JSON file beside an ONNX model; `tokenizer.json` of multilingual models has up to 33 MiB. */
  modelFileBytes: 128 * MIB,
  /**
   * What `memory model add` reads: all files of a source, unpacked, and how many
   * files are looked through. The largest models in one ONNX file have 2 GiB.
   */
  modelBytes: 4096 * MIB,
  modelSourceFiles: 20_000,
  /** The list of its files. */
  manifestBytes: MIB,
  /** Rows of one page or list that is requested from the memory store. */
  page: 5_000,
  /**
   * UTF-8 bytes of an id, and of a name or key: PostgreSQL indexes at most 2,704 bytes, and an edge contains two ids.
   */
  idBytes: 1_000,
  nameBytes: 2_000,
  /** Agents listed for one session. */
  sessionAgents: 50,
  /** Names that are compared for a suggestion when a name was not found. */
  similarNames: 200,
  /** Stems of words that are cached for later queries. */
  stems: 10_000,
  /** Connections of one memory backend to PostgreSQL. */
  connections: 10,
  /** Statements that each of them keeps prepared: some 5 of each namespace that is searched, with up to 100 KiB each. */
  preparedStatements: 256,
  /** Entities for which PostgreSQL counts occurrences of the query's words: those that match the rarest words. */
  ranked: 2_000,
  /**
   * Of a word in more entities than this, PostgreSQL ranks only those that have it in the title, in a heading or more than
   * once, those that have another word of the search, and as many others as the search returns.
   */
  rankedAll: 300,
  /** Entities from which PostgreSQL estimates the number of entities with a common word, instead of counting them. */
  counted: 20_000,
  /** How long PostgreSQL's count of all entities is reused for word rarity. */
  countMaxAge: 10 * SECOND,
  /** Timeout of a connection to PostgreSQL, and of one statement. */
  connect: 5 * SECOND,
  statement: 30 * SECOND,
  /** One document, ingested or in the docs folder. Hostile Markdown of that size is parsed in 2 s. */
  documentBytes: 2 * MIB,
  /** Files of the docs folder, and nesting of its folders; beyond either, the sync reports an error. */
  documents: 100_000,
  folderDepth: 32,
  /** Documents that a sync processes concurrently: four of the longest take half of `queueBytes`. */
  syncConcurrency: 4,
  /** Errors of a sync that are reported individually; further errors are counted. */
  syncErrors: 50,
  /** Candidates of a search: this many by meaning, and as many by words. */
  candidates: 50,
  /** The same if copies of one passage are most of them. */
  moreCandidates: 400,
  /** Places where a result stands too, and words in which such a place differs. */
  copies: 5,
  differingWords: 8,
  /** Texts from which a search learns how common sequences of letters are. */
  sample: 256,
  /** Distinct words of a query that are used; the rest of a longer query is ignored. */
  queryWords: 64,
  queryLength: 2_000,
  results: 50,
  /** Characters of one result: five results stay far below the 25,000 tokens that clients accept. */
  resultLength: 2_000,
  /** Graph traversal: depth, nodes and edges. A hub of 10^5 edges must not become one response. */
  graphDepth: 5,
  graphNodes: 500,
  graphNodesDefault: 200,
  graphEdges: 2_000,
  /** Entities of agents: characters of a type, of an observation, and of all observations of one entity. */
  entityTypeLength: 100,
  relationTypeLength: 100,
  observationLength: 16 * KIB,
  observationsLength: 48 * KIB,
  /** Entities, relations or names in one call. */
  graphChanges: 1_000,
  /** Characters of one page of entities of agents: about 10,000 tokens. The first entity is complete, whatever its size. */
  graphCharacters: 40_000,
  /** Relations in such a page. */
  graphRelations: 500,
  /** Characters of one page of earlier turns. */
  turnCharacters: 40_000,
  /** Entities, turns and documents that one call deletes; the answer says when there are more. */
  erased: 5_000,
  /** What has expired is deleted this often, so many of each kind in one transaction. A shorter life has no use. */
  expiryInterval: 60 * SECOND,
  expiryBatch: 500,
  shortestLifetime: SECOND,
  /** Of each kind, so many are listed in a preview; all are counted. */
  erasedShown: 100,
  /** Chunks that become related to an entity because they contain its name. */
  mentions: 200,
  /** Words of a name that is recognised in texts. */
  mentionWords: 6,
  /** Remote embeddings: texts per call, characters per text, response timeout, response size, attempts. */
  embeddingInputs: 64,
  embeddingInputLength: 8_000,
  embeddingTimeout: 30 * SECOND,
  embeddingResponseBytes: 16 * MIB,
  embeddingAttempts: 3,
  /** Longest wait that a service may request with Retry-After; a longer one fails the call. */
  embeddingRetryAfter: 20 * SECOND,
  /** A query gets one attempt and this long; after it, the search uses words only. */
  embeddingQueryTimeout: 3 * SECOND,
  /** A query waits so long for a model that computes the vectors of stored texts; then the search uses words only. */
  embeddingQueryWait: 4 * SECOND,
  /** Stored texts that are embedded together; a kill loses at most the work on these. */
  embeddingPage: 64,
  /** Interval of progress lines while many texts are embedded. */
  embeddingReport: 5 * SECOND,
  /** Batches that wait for a model on this machine; a further one is answered with status 503. */
  embeddingQueue: 512,
  /**
   * Delay after the first failure of an embedder or of the extraction of entities, doubled after each further one up to
   * the second value.
   */
  queueDelay: SECOND,
  queueMaxDelay: 300 * SECOND,
  /** How long an ingestion waits for its vectors; they are computed later otherwise. */
  embeddingWait: 15 * SECOND,
  /** Extraction of entities: characters of a text, response timeout and size, entities and relations of one text. */
  extractionInputLength: 8_000,
  extractionTimeout: 60 * SECOND,
  extractionResponseBytes: MIB,
  extracted: 20,
  /** Earlier turns of which a model says whether a turn makes them outdated, at most half of them the best of a search; characters of each. */
  earlierTurns: 30,
  earlierTurnLength: 500,
  /** The latest turns among which they are looked for. */
  latestTurns: 200,
  /** A model that names more has not understood what it was asked: then none is outdated. */
  outdated: 3,
  /** Texts that a service may refuse before it has accepted one; then it is called with one text after each delay. */
  extractionRefused: 3,
  /** Texts that are read from the store together; the next ones wait there. */
  extractionPage: 16,
} as const;
