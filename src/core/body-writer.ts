/** What a response body needs of its response: the part that `http.ServerResponse` and an HTTP/2 response share. */
export interface BodyWriter {
  readonly headersSent: boolean;
  /** Whether the connection or stream is gone. */
  readonly destroyed: boolean;
  /** Whether everything was handed to the operating system, including the end. */
  readonly writableFinished: boolean;
  /** Bytes that wait for the client to read. */
  readonly writableLength: number;
  /** Returns false if the client should be waited for (`drain`). */
  write(chunk: string | Uint8Array): boolean;
  end(chunk?: string | Uint8Array, encoding?: BufferEncoding): unknown;
  /** Sends the headers before there is a body. */
  flushHeaders(): void;
  /** Ends the response without a regular end, so that the client does not mistake it for a complete one. */
  destroy(): unknown;
  /** `listener` is called with the response as `this`. */
  once(event: 'close' | 'drain' | 'finish', listener: () => void): unknown;
}
