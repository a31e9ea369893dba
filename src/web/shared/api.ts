import { LIMITS } from '../../core/limits.ts';

/** A request that failed, in words for the page: what was asked, and what came back. */
export class ApiError extends Error {
  readonly status: number | undefined;
  /** What the server says for programs. */
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
  readonly signal?: AbortSignal;
  /** How long to wait for the whole answer, in ms; without it, as long as our servers take for a request. */
  readonly within?: number;
}

let always: Readonly<Record<string, string>> = {};

/** Headers that every request carries from now on, such as a key. They never are part of an address. */
export function sendAlways(headers: Readonly<Record<string, string>>): void {
  if (JSON.stringify(headers) !== JSON.stringify(always)) early.clear();
  always = headers;
}

/** Answers on their way to parts of the application that are still being loaded. */
const early = new Map<string, Promise<Response>>();

/** Asks ahead: the first `ask` for this path gets the answer. For what the page that opens is sure to want. */
export function askEarly(path: string): void {
  const answer = fetch(path, { headers: always, signal: AbortSignal.timeout(LIMITS.requestTimeout) });
  // Whoever takes it hears of a failure.
  answer.catch(() => undefined);
  early.set(path, answer);
}

function takeEarly(path: string): Promise<Response> | undefined {
  const answer = early.get(path);
  early.delete(path);
  return answer;
}

/** Asks the server that this page came from. Throws `ApiError`, also when it cannot be reached. */
export async function ask<T>(path: string, options: Ask = {}): Promise<T> {
  const { method = 'GET', body, signal, within = LIMITS.requestTimeout } = options;
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
    (method === 'GET' ? takeEarly(path) : undefined) ??
    fetch(path, {
      method,
      headers: body === undefined ? always : { ...always, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: signal === undefined ? late : AbortSignal.any([signal, late]),
    });
  const response = await sent.catch(failed);
  const text = await response.text().catch(failed);
  if (!response.ok) {
    const { message = `${path} answered ${response.status}`, details } = problemIn(text);
    throw new ApiError(message, response.status, details);
  }
  if (!(response.headers.get('content-type') ?? '').includes('json')) return text as T;
  return JSON.parse(text) as T;
}

interface Told {
  readonly message?: string | undefined;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** What an error body says, in one of the forms that our servers give. */
function problemIn(text: string): Told {
  try {
    const { error, message } = JSON.parse(text) as { error?: Told | string; message?: string };
    return typeof error === 'string' ? { message: error } : { message, ...error };
  } catch {
    return text === '' || text.startsWith('<') ? {} : { message: text.slice(0, 500) };
  }
}
