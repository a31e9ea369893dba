import { KIB, MIB, SECOND } from './units.ts';

/** Limits of connections and HTTP messages, from clients and to upstreams. Times are in ms and sizes in bytes unless a comment says otherwise. */
export const HTTP_LIMITS = {
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
  shadowingChecks: 100,
  /**
   * Time until all headers have arrived, until the whole request has arrived, and until an idle connection is closed.
   */
  headersTimeout: 10 * SECOND,
  requestTimeout: 60 * SECOND,
  keepAliveTimeout: 65 * SECOND,
  /** Time until the TLS handshake of a connection has ended (upstream `frontendPolicies.tls.handshakeTimeout`). */
  tlsHandshakeTimeout: 15 * SECOND,
  /** A TCP connection that is passed on is closed if it is silent for that long (Envoy's `idle_timeout` of its TCP proxy). */
  tcpIdle: 3_600 * SECOND,
  /** Bytes of the first message of TLS that are read to find the name in it; browsers send 2 KB. */
  clientHelloBytes: 16 * KIB,
  /** Open requests of an HTTP/2 connection (RFC 9113 §6.5.2 recommends at least 100); more are refused. */
  http2Streams: 100,
  /** What a client may send of one request before it is read (RFC 9113 §6.9.2: the initial value of every implementation). */
  http2StreamWindow: 65_535,
  /**
   * Headers and unsent data of an HTTP/2 connection, in MB (Node); new streams are refused with ENHANCE_YOUR_CALM above
   * it.
   */
  http2SessionMemory: 10,
  /** Entries of one SETTINGS frame (Node); the connection is closed. */
  http2Settings: 32,
  /** Pings of our own without an answer (Node); there is one, when the port closes. Those of clients: nghttp2, 1,000. */
  http2Pings: 10,
  /** Time for the answer to a ping (upstream `http2KeepaliveTimeout`). */
  http2PingTimeout: 20 * SECOND,
  /** Invalid frames before an HTTP/2 connection is closed. Node's 1,000 is meant for proxies of proxies. */
  http2InvalidFrames: 100,
  /** Streams over `http2Streams` that a client may open before its connection is closed (Node). */
  http2RejectedStreams: 100,
  /**
   * Streams that a client may open and reset at once, and per second after that, before its connection is closed
   * (CVE-2023-44487). A client that cancels all its requests, and does so again, stays below it; Node has 1,000 and 33.
   */
  http2ResetBurst: 300,
  http2ResetRate: 33,
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
   * Nesting of a JSON text. 10^6 nested arrays parse in about 0.3 s and cannot be serialized again; 128 levels keep parsing
   * under 70 ms.
   */
  jsonDepth: 128,
  /** Members and items of a JSON text: 50,000 short members parse in 28 ms, during which all other requests wait. */
  jsonKeys: 50_000,
  /** Items of a JSON body that is parsed before a rule reads it. Evaluation steps limit `json()` to the same number. */
  jsonItems: 200_000,
  /** Characters of a member's name in an error message: enough to find it, too few to echo a body. */
  memberNameLength: 64,
  /** Parts of a form, and header bytes of one part. 40,000 parts or 300,000 header lines take 0.4 s to parse. */
  formParts: 1_000,
  formHeaderBytes: 4 * KIB,
  /**
   * Nesting of any other JSON text that is parsed; a deeper one is not JSON. Functions that call themselves for each level
   * have stack for about 5,000.
   */
  parsedJsonDepth: 1_000,

  /**
   * A WebSocket: a side that has not answered a ping when the next one is due is closed. Below the 60 s after which
   * common proxies close idle connections.
   */
  webSocketPing: 30 * SECOND,
  /** Body of a response that refuses a WebSocket; it is truncated. */
  webSocketRefusal: 64 * KIB,

  /**
   * A response that the client does not read: the source is paused above `streamHighWaterBytes`, and the connection is
   * destroyed after `writeStall`.
   */
  streamHighWaterBytes: 64 * KIB,
  /**
   * Chunks of one write are coalesced up to this size, which Node.js writes from its stack without allocating memory.
   */
  coalescedWriteBytes: 16 * KIB,
  writeStall: 30 * SECOND,
  connectTimeout: 10 * SECOND,
  /** Requests at the same time on one HTTP/2 connection to a backend: the least that servers should allow (RFC 9113 §6.5.2). */
  upstreamStreams: 100,
  /**
   * Lookup of an upstream's host name: glibc asks a second time, or another server, after 5 s, and gives up after 10 s.
   */
  hostLookupTimeout: 7 * SECOND,
  /** If a lookup takes longer than this, the last known addresses are used (RFC 8767 §5, client response timer). */
  hostLookupFallbackAfter: 1_800,
  /** Host names whose addresses are remembered for that; beyond that, the oldest entry is forgotten. */
  cachedHostLookups: 1_000,
  /** Servers of one `dynamic` backend, or endpoints of one `service`, whose connections are kept; beyond that, the one used least recently is forgotten. */
  dynamicTargets: 256,
  /** Endpoints of one request that a picker can name: each may be tried, within the time of the request. */
  pickedEndpoints: 16,
  /** Maximum age of a connection to a host name: the name may resolve to another address by then. */
  connectionMaxAge: 60 * SECOND,
  /** How long an MCP server over HTTP may take to send its response headers. */
  upstreamHeadersTimeout: 300 * SECOND,
  /**
   * How long a plain HTTP service may be silent within its response body (same default as Envoy's stream idle timeout).
   * Event streams with the usual keepalive every 15 to 60 s never reach it.
   */
  backendIdle: 300 * SECOND,

  /** 1xx responses of an upstream before its final response; more are answered with status 502. */
  informationalResponses: 100,

  /**
   * Minimum interval between two warnings that the same upstream is unreachable; each request has its own access-log
   * line.
   */
  upstreamWarningInterval: 60 * SECOND,
  /** How long each request to an upstream gets a connection of its own after it has sent bytes that no request asked for twice. */
  upstreamDistrust: 600 * SECOND,
  /** Certificates of one listener that issues them (`dynamicCa`); beyond that, the one used least recently is issued again. */
  issuedCertificates: 1_000,
  /** Minimum interval between two log lines about failed TLS handshakes of one certificate; scanners cause many. */
  tlsFailureInterval: 10 * SECOND,
} as const;
