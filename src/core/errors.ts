import { errorCode } from './foreign.ts';

/**
 * Every failure that an HTTP client or a caller of the command line can see. Code throws `AppError` with a code where
 * the failure happens; `server/kernel/request/error-response.ts` turns it into a response, `cli/main.ts` into an exit code.
 */

/** Which component answered a request, or why none did, as printed in the access log (`reason`). */
export type Reason =
  | 'Upstream'
  | 'DirectResponse'
  | 'NotFound'
  | 'Internal'
  | 'InvalidRequest'
  | 'JwtAuth'
  | 'BasicAuth'
  | 'Oidc'
  | 'APIKeyAuth'
  | 'ExtAuth'
  | 'ExtProc'
  | 'Authorization'
  | 'Timeout'
  | 'RateLimit'
  | 'Guardrail'
  | 'MCP'
  // Not one of upstream's reasons: it has no policies in TypeScript.
  | 'Policy'
  | 'UpstreamFailure'
  // Not one of upstream's reasons: a client that disconnects is nobody's failure.
  | 'ClientClosed';

interface ErrorEntry {
  readonly status: number;
  readonly reason: Reason;
  /** Public text when the thrower gives none. Never contains anything from the request or from an upstream. */
  readonly text: string;
  /** Other public texts of it, with `…` for what differs. */
  readonly texts?: readonly string[];
  /** Its names in answers in the formats of LLM APIs, if another than that in the table. */
  readonly codes?: readonly string[];
}

const entry = (
  status: number,
  reason: Reason,
  text: string,
  more: Pick<ErrorEntry, 'texts' | 'codes'> = {},
): ErrorEntry => ({ status, reason, text, ...more });

/** Failures of a request: status, access-log reason and default public text. */
export const ERRORS = {
  bad_request: entry(400, 'InvalidRequest', 'bad request'),
  request_timeout_reading: entry(408, 'InvalidRequest', 'the request was not received in time'),
  headers_too_large: entry(431, 'InvalidRequest', 'request header fields too large'),
  version_not_supported: entry(505, 'InvalidRequest', 'HTTP version not supported'),
  transfer_encoding_not_supported: entry(501, 'InvalidRequest', 'transfer-encoding not supported'),
  method_not_allowed: entry(405, 'InvalidRequest', 'method not allowed'),
  body_too_large: entry(413, 'InvalidRequest', 'request body is too large'),
  encoding_not_supported: entry(
    415,
    'InvalidRequest',
    'content-encoding is not supported: send identity, gzip, deflate or br',
  ),
  expectation_failed: entry(417, 'InvalidRequest', 'unsupported expectation: only 100-continue is supported'),
  route_not_found: entry(404, 'NotFound', 'route not found'),
  misdirected: entry(421, 'InvalidRequest', 'this connection was made to another host name: make a new one'),
  listener_not_found: entry(404, 'NotFound', 'no listener for this host'),
  host_not_allowed: entry(403, 'MCP', 'Host or Origin is not allowed'),
  // These errors carry their own JSON bodies: RFC 6750 §3.1 and the specification's "Errors" table.
  token_missing: entry(401, 'JwtAuth', 'JWT token required'),
  token_invalid: entry(401, 'JwtAuth', 'the token is not valid'),
  keys_unavailable: entry(
    503,
    'JwtAuth',
    'tokens cannot be checked: the signing keys of the identity provider are not available',
  ),
  provider_failed: entry(502, 'UpstreamFailure', 'the identity provider did not return a valid response'),
  memory_unauthorized: entry(401, 'APIKeyAuth', 'a bearer token is required'),
  memory_forbidden: entry(403, 'Authorization', 'this key does not permit the request'),
  memory_not_found: entry(404, 'NotFound', 'not found in the memory store'),
  oidc_failed: entry(400, 'Oidc', 'the sign-in failed; open the page again to sign in'),
  basic_auth_failed: entry(401, 'BasicAuth', 'basic authentication failure'),
  api_key_failed: entry(401, 'APIKeyAuth', 'api key authentication failure'),
  authorization_failed: entry(403, 'Authorization', 'authorization failed'),
  // The specification prescribes this text for every denial.
  ext_authz_failed: entry(403, 'ExtAuth', 'external authorization failed'),
  ext_proc_failed: entry(500, 'ExtProc', 'external processing failed'),
  // The specification prescribes this text ("error" of the access log).
  rate_limit_failed: entry(500, 'RateLimit', 'the rate limit service is not available'),
  rate_limited: entry(429, 'RateLimit', 'rate limit exceeded', { codes: ['rate_limit_exceeded'] }),
  budget_exceeded: entry(429, 'RateLimit', 'the budget is used up', {
    texts: ['… is used up; …', '… left, and this call may use …'],
    codes: ['insufficient_quota'],
  }),
  budget_failed: entry(
    503,
    'Internal',
    'budgets cannot be checked: the database of the gateway is not available',
  ),
  overloaded: entry(503, 'Internal', 'the gateway is overloaded; try again later'),
  gateway_closing: entry(
    503,
    'Timeout',
    'the gateway is closing this port, and the drain timeout has expired',
  ),
  database_unavailable: entry(503, 'Internal', 'the database of the gateway is not available'),
  no_endpoint: entry(503, 'UpstreamFailure', 'no endpoint is available for the request'),
  no_backend: entry(500, 'Internal', 'no valid backends'),
  internal: entry(500, 'Internal', 'internal error'),
  upstream_unreachable: entry(503, 'UpstreamFailure', 'upstream call failed'),
  upstream_invalid: entry(502, 'UpstreamFailure', 'upstream call failed', {
    texts: [
      "upstream call failed: the provider did not accept the gateway's credentials",
      'the provider ended the stream early',
    ],
    codes: ['provider_auth_failed'],
  }),
  upstream_timeout: entry(504, 'Timeout', 'upstream call timeout'),
  request_timeout: entry(504, 'Timeout', 'request timeout'),
  llm_invalid: entry(400, 'InvalidRequest', 'the LLM request is not valid'),
  llm_unknown_call: entry(404, 'NotFound', 'unknown endpoint …', {
    codes: ['unknown_url'],
  }),
  llm_not_found: entry(404, 'NotFound', 'Model not found', { codes: ['model_not_found'] }),
  llm_forbidden: entry(403, 'Authorization', 'Model is not allowed for this API key', {
    codes: ['model_not_allowed'],
  }),
  // The specification prescribes the text for a webhook; other kinds have their name in its place.
  guardrail_rejected: entry(403, 'Guardrail', 'request rejected by … guardrail'),
  guardrail_failed: entry(503, 'Guardrail', 'prompt guard failed'),
  policy_denied: entry(403, 'Policy', 'denied by a policy'),
  policy_failed: entry(500, 'Policy', 'a policy has failed'),
  mcp_invalid: entry(400, 'MCP', 'mcp: the request is not valid'),
  mcp_session_missing: entry(400, 'MCP', 'mcp: session header is required for non-initialize requests'),
  mcp_session_not_found: entry(
    404,
    'MCP',
    'mcp: session not found: start a new one with an initialize request',
  ),
  mcp_method_not_allowed: entry(405, 'MCP', 'mcp: method not allowed; must be GET, POST, or DELETE'),
  // The specification prescribes this text word for word ("Errors" table of the gateway document).
  mcp_not_acceptable: entry(406, 'MCP', 'Not Acceptable: Client must accept text/event-stream'),
  mcp_unsupported_media_type: entry(415, 'MCP', 'mcp: client must send application/json'),
  mcp_session_failed: entry(500, 'MCP', 'mcp: failed to create session'),
  memory_invalid: entry(400, 'InvalidRequest', 'rejected by the memory store'),
  memory_changed: entry(
    409,
    'InvalidRequest',
    'what would be deleted has changed since the preview: look at it again',
  ),
  memory_key_reused: entry(
    422,
    'InvalidRequest',
    'the Idempotency-Key was used for another turn of this session: send a new key with each turn, and the same turn with a key again',
  ),
  memory_busy: entry(503, 'Internal', 'the memory store is overloaded; try again later'),
  memory_full: entry(507, 'Internal', 'the disk of the memory store is full; nothing was changed'),
  memory_unavailable: entry(503, 'Internal', 'the memory store is not available'),
  // For the operator at start-up: the message names the file or server and says what to do.
  memory_not_opened: entry(503, 'Internal', 'the memory store cannot be opened'),
  memory_in_use: entry(503, 'Internal', 'another process has the memory store'),
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof ERRORS;

export interface AppErrorOptions {
  /** Public text that replaces the table's. */
  readonly message?: string;
  /** For the log only. May name upstream addresses, never secrets. */
  readonly detail?: string;
  /** What log and record have instead of the public text. */
  readonly logged?: string | undefined;
  readonly headers?: readonly string[];
  /** Replaces the table's status, where the configuration sets one. */
  readonly status?: number;
  /** Body with a content type other than text/plain. */
  readonly body?: { readonly type: string; readonly text: string };
  readonly cause?: unknown;
}

/** A failure with a code from the table. `message` is public; `detail` goes to the log only. */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly detail: string | undefined;
  /** What log and record say of it. */
  readonly logged: string;
  /** Extra response headers, as alternating names and values. */
  readonly headers: readonly string[];
  readonly body: { readonly type: string; readonly text: string } | undefined;
  readonly status: number;

  constructor(code: ErrorCode, options: AppErrorOptions = {}) {
    super(
      options.message ?? ERRORS[code].text,
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.name = 'AppError';
    this.code = code;
    this.detail = options.detail;
    this.logged = options.logged ?? this.message;
    this.headers = options.headers ?? [];
    this.body = options.body;
    this.status = options.status ?? ERRORS[code].status;
  }

  get reason(): Reason {
    return ERRORS[this.code].reason;
  }
}

/** The message of any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The class of anything that was thrown, for `error.type` of spans: its code, such as `ECONNREFUSED`, or its class. */
export function errorType(error: unknown): string {
  const code = errorCode(error);
  if (code !== '') return code;
  return error instanceof Error ? error.constructor.name : '_OTHER';
}

/** What an operator needs to know of an error: its detail, which clients do not get, else its message. */
export function detailOf(error: unknown): string {
  return (error instanceof AppError ? error.detail : undefined) ?? messageOf(error);
}
