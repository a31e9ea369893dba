import { KIB, MIB, SECOND } from './units.ts';

/** Limits of policies: external authorization, tokens and identity providers, rate limits. Times are in ms and sizes in bytes unless a comment says otherwise. */
export const POLICIES_LIMITS = {
  /** extAuthz: response timeout (upstream), and how much of the response body expressions can read. */
  authorizationTimeout: 2 * SECOND,
  authorizationBody: 64 * KIB,
  /** Body of a cached outcome; a request that is denied with a larger one is asked about again. */
  cachedAuthorizationBody: 4 * KIB,
  /** How long an outcome is cached at most if an expression, which may read the answer of the service, says how long. */
  cachedAuthorizationTime: 24 * 3600 * SECOND,
  /** extProc: how long the service may take for an answer. Pieces in which bodies are sent, as Node.js reads them. */
  processorTimeout: 10 * SECOND,
  processorPiece: 64 * KIB,
  /** Answer of a service of extProc, besides the body that it may contain. */
  processorAnswer: 64 * KIB,
  /** extAuthz, extProc and remoteRateLimit with gRPC: headers or query parameters of one kind in an answer, as many as a request may have. */
  serviceChanges: 100,
  /**
   * Connections to one authorization service; further requests wait, and the wait counts towards the response timeout.
   */
  authorizationConnections: 256,
  /**
   * networkExtAuthz: connections that wait for the service; further ones are closed. What their clients send meanwhile is
   * kept, up to 64 KiB of each.
   */
  authorizingConnections: 1_000,
  /**
   * Tokens: length in characters; number of validated tokens that are cached per policy, and characters of their
   * payloads together.
   */
  tokenLength: 16 * KIB,
  validTokens: 10_000,
  validTokenCharacters: 16 * MIB,
  /** Passwords: length in characters; checks of one policy at a time, beyond which requests get status 503. */
  passwordLength: 1024,
  passwordChecks: 16,
  /** A file with a credential, or with the keys of clients, one on each line. */
  credentialFileBytes: MIB,
  /**
   * Identity provider: response timeout; hosts of its documents and endpoints to which connections are kept, of which the least
   * recently used one is closed; size of its key set, metadata and registration responses.
   */
  providerTimeout: 5 * SECOND,
  providerOrigins: 8,
  keySetBytes: MIB,
  keys: 100,
  /** RFC 7518 §3.3: "a key of size 2048 bits or larger MUST be used". */
  rsaBits: 2048,
  metadataBytes: 256 * KIB,
  /** How long an exchanged token, or one of a cloud, is used at most, whatever lifetime its issuer says. */
  tokenLifetimeMax: 24 * 3600 * SECOND,
  /**
   * oidc: sessions that are renewed at once or were renewed within `renewedSessionMemory`; further ones are not renewed.
   * So long, requests that a browser sent before it had the new cookie get the same renewed session.
   */
  sessionRenewals: 1_000,
  renewedSessionMemory: 30 * SECOND,
  /** Sessions of oidc that users have ended and that have not expired: about 150 bytes each. */
  oidcEndedSessions: 20_000,
  registrationBytes: 64 * KIB,
  /** Redirect URIs of one registration, and characters of one: VS Code registers six. */
  redirectUris: 100,
  redirectUriLength: 2 * KIB,
  /**
   * Client registrations per `registrationsInterval`, from one address (an office may share one) and in total; more are
   * answered with status 429. Addresses that are tracked; beyond that, the count of the oldest starts again.
   */
  registrationsPerAddress: 30,
  registrations: 120,
  registrationsInterval: 60 * SECOND,
  registrationAddresses: 1_000,
  /**
   * Minimum interval between two refreshes of a key set for an unknown key id, since anyone can send a token with an
   * arbitrary key id.
   */
  keyRefetchInterval: 30 * SECOND,
  /**
   * How long documents of the identity provider are cached: without Cache-Control, and the bounds on what Cache-Control
   * may set.
   */
  documentLifetime: 15 * 60 * SECOND,
  documentLifetimeMin: 60 * SECOND,
  documentLifetimeMax: 24 * 3600 * SECOND,
  /** How long authorization-server metadata is cached. If refreshing it fails, the cached copy is used. */
  serverMetadataLifetime: 5 * 60 * SECOND,
  /** The longest delay that `delay` injects: above the timeouts that it is meant to test. */
  injectedDelay: 5 * 60 * SECOND,
  /**
   * Retries that may run at once, per policy: this number, or this share of its open requests if that is more (Envoy's
   * retry budget: 3 and 20 %). A service that fails under load would otherwise get a multiple of it.
   */
  retryConcurrency: 3,
  retryShare: 0.2,
  /**
   * Copies of requests that one `requestMirror` sends at once; further requests are not copied. Time until a copy must be
   * answered. Each copy keeps a body of at most `smallBody`.
   */
  mirroredRequests: 100,
  mirrorTimeout: 30 * SECOND,
  /** remoteRateLimit: response timeout, and size of a response. */
  rateLimitTimeout: 2 * SECOND,
  rateLimitResponse: 64 * KIB,
  /** remoteRateLimit: the longest time in `x-ratelimit-reset`, in seconds: that of its longest unit. */
  rateLimitReset: 366 * 24 * 3600,
  /** Clients that one rate limit tracks; beyond that, the least recently seen one starts again with a full bucket. */
  rateLimitKeys: 10_000,
  /**
   * config.shared: how long a request waits for Redis by default and at most; a connection; and the mean interval of new
   * connections after a failure. A server on the same network answers within 1 ms, and forks for a snapshot within 100 ms.
   */
  storeTimeout: SECOND / 2,
  storeTimeoutMax: 10 * SECOND,
  storeConnectTimeout: 2 * SECOND,
  storeRetryInterval: SECOND,
  /**
   * Counters of budgets in memory (one is about 300 bytes); beyond that, those that no call uses are read from the
   * database again.
   */
  budgetCounters: 100_000,
  /** How long calls wait for the database of budgets: longer than a lock of SQLite and a connection of PostgreSQL take. */
  budgetWait: 6 * SECOND,
  /** How old counters in memory may be, if no other process has written to the database. */
  budgetFreshness: 250,
  /** How long counters are read before each call after another process with the same SQLite file was noticed. */
  budgetPresence: 10 * SECOND,
  /**
   * Sign-ins of users at MCP servers: how long a link is valid; open links of a user for one server, of which the latest are kept;
   * codes that can be entered for one; and links for whose users a process waits, with the interval.
   */
  signInLifetime: 10 * 60 * SECOND,
  openSignIns: 8,
  signInAttempts: 5,
  pendingSignIns: 1_000,
  signInPoll: SECOND,
  /**
   * Tokens of users: renewed this long before they expire; not renewed again when refused right after they were issued; how long
   * one process has for it while the others wait, and how often these look; and how often it tries to store what it has got.
   */
  tokenRenewal: 30 * SECOND,
  freshToken: 10 * SECOND,
  renewalLease: 30 * SECOND,
  renewalPoll: SECOND / 10,
  renewalWrites: 10,
  /** Scopes that a user is asked for, and characters of a challenge that are read. */
  oauthScopes: 100,
  challengeLength: 8 * KIB,
  /**
   * modules: how long a file may take to load; how long a function of a policy may take by default, and at most by the configuration; and the characters of what its
   * code says to clients.
   */
  moduleLoading: 10 * SECOND,
  moduleCall: 5 * SECOND,
  moduleCallMost: 3600 * SECOND,
  denialLength: KIB,
  /** How often virtual keys are compared with the database, for changes by other gateways. */
  keyRefresh: SECOND,
} as const;
