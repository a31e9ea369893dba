/** One request to the memory backend. */
export interface BackendRequest {
  readonly method: 'GET' | 'POST';
  /** Below `/api/memory`, with the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  readonly signal: AbortSignal;
}

export interface BackendReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** How requests reach the backend: over HTTP, or in the same process. */
export interface Transport {
  /** For messages: where the backend is. */
  readonly origin: string;
  /** Rejects with the error of the connection, or with the reason of the signal. */
  send(request: BackendRequest): Promise<BackendReply>;
  close(): Promise<void>;
}

/** A reply that is longer than any of ours. */
export class ReplyTooLongError extends Error {}
