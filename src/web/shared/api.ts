import { LIMITS } from '../../core/limits.ts';

/** A request that failed, in words for the page: what was asked, and what came back. */
export class ApiError extends Error {
  readonly status: number | undefined;

  constructor(message: string, status?: number) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
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
  always = headers;
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
  const response = await fetch(path, {
    method,
    headers: body === undefined ? always : { ...always, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: signal === undefined ? late : AbortSignal.any([signal, late]),
  }).catch(failed);
  const text = await response.text().catch(failed);
  if (!response.ok)
    throw new ApiError(messageOf(text) ?? `${path} answered ${response.status}`, response.status);
  if (!(response.headers.get('content-type') ?? '').includes('json')) return text as T;
  return JSON.parse(text) as T;
}

/** The message of an error body in one of the forms that our servers give. */
function messageOf(text: string): string | undefined {
  try {
    const { error, message } = JSON.parse(text) as {
      error?: { message?: string } | string;
      message?: string;
    };
    return typeof error === 'string' ? error : (error?.message ?? message);
  } catch {
    return text === '' || text.startsWith('<') ? undefined : text.slice(0, 500);
  }
}
