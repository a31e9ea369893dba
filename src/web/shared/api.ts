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
}

let always: Readonly<Record<string, string>> = {};

/** Headers that every request carries from now on, such as a key. They never are part of an address. */
export function sendAlways(headers: Readonly<Record<string, string>>): void {
  always = headers;
}

/** Asks the server that this page came from. Throws `ApiError`, also when it cannot be reached. */
export async function ask<T>(path: string, { method = 'GET', body, signal }: Ask = {}): Promise<T> {
  const response = await fetch(path, {
    method,
    headers: body === undefined ? always : { ...always, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  }).catch((error: unknown) => {
    if (signal?.aborted === true) throw error;
    throw new ApiError(`${location.origin} does not answer. Is it still running?`);
  });
  const text = await response.text();
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
