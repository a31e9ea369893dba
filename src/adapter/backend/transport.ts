/** One request to the memory backend. */
export interface BackendRequest {
  readonly method: 'GET' | 'POST';
  /** Path below `/api/memory`, with the query. */
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

/** How requests reach the backend: over HTTP, or within the same process. */
export interface Transport {
  /** The address of the backend, for messages. */
  readonly origin: string;
  /** Rejects with the error of the connection, or with the reason of the signal. */
  send(request: BackendRequest): Promise<BackendReply>;
  close(): Promise<void>;
}

/** A response longer than any that the backend sends. */
export class ReplyTooLongError extends Error {}
