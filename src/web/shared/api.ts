import { isRecord, membersOf, parseJson, stringIn } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';

/** A failed request, with a message for the page: what was requested, and what came back. */
export class ApiError extends Error {
  readonly status: number | undefined;
  /** Details from the server, for programs. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(message: string, status?: number, details: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.details = details;
  }
}

interface Ask {
  readonly method?: string;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent in addition to those of `sendAlways`, or instead of them. */
  readonly headers?: Readonly<Record<string, string>>;
  /** For a request that must also be sent if the page is closed at this moment. */
  readonly keepalive?: boolean;
  readonly signal?: AbortSignal;
  /** Timeout of the whole response in ms. Default: the request timeout of our servers. */
  readonly within?: number;
}

let always: Readonly<Record<string, string>> = {};

/** Headers that every request carries from now on, such as a key. They are never part of an address. */
export function sendAlways(headers: Readonly<Record<string, string>>): void {
  if (JSON.stringify(headers) !== JSON.stringify(always)) early.clear();
  always = headers;
}

/** Responses that were requested ahead, for parts of the application that are still loading. */
const early = new Map<string, Promise<Response>>();

/**
 * Requests a path ahead of time: the first `ask` for it gets the response. For data that the first page certainly
 * needs.
 */
export function prefetch(path: string): void {
  const answer = fetch(path, { headers: always, signal: AbortSignal.timeout(LIMITS.requestTimeout) });
  // `ask` reports a failure to its caller.
  answer.catch(() => undefined);
  early.set(path, answer);
}

function takePrefetched(path: string): Promise<Response> | undefined {
  const answer = early.get(path);
  early.delete(path);
  return answer;
}

/** Sends a request to the server of this page. Throws `ApiError`, also if the server cannot be reached. */
export async function ask<T>(path: string, options: Ask = {}): Promise<T> {
  const {
    method = 'GET',
    body,
    headers,
    keepalive = false,
    signal,
    within = LIMITS.requestTimeout,
  } = options;
  const late = AbortSignal.timeout(within);
  const failed = (error: unknown): never => {
    if (signal?.aborted === true) throw error;
    throw new ApiError(
      late.aborted
        ? `${location.origin} did not answer within ${Math.round(within / 1000)} s.`
        : `${location.origin} does not answer. Is it still running?`,
    );
  };
  const sent =
    (method === 'GET' && headers === undefined ? takePrefetched(path) : undefined) ??
    fetch(path, {
      method,
      headers: {
        ...always,
        ...headers,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      keepalive,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: signal === undefined ? late : AbortSignal.any([signal, late]),
    });
  const response = await sent.catch(failed);
  const text = await response.text().catch(failed);
  if (!response.ok) {
    const { message = `${path} answered ${response.status}`, details } = problemIn(text);
    throw new ApiError(message, response.status, details);
  }
  const isJson = (response.headers.get('content-type') ?? '').includes('json');
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- pages and server are of one package
  return (isJson ? parseJson(text) : text) as T;
}

interface ServerProblem {
  readonly message?: string | undefined;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** The message of an error body, in one of the formats that our servers use. */
function problemIn(text: string): ServerProblem {
  try {
    const { error, message } = membersOf(parseJson(text));
    const { message: inner = message, details } = membersOf(error);
    return {
      message: stringIn(error) ?? stringIn(inner),
      ...(isRecord(details) ? { details } : {}),
    };
  } catch {
    return text === '' || text.startsWith('<') ? {} : { message: text.slice(0, 500) };
  }
}
