import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { errorCode, parseJson } from '../../core/foreign.ts';
import { MEMORY_API_LIMITS } from '../../core/memory-limits.ts';
import { NAMESPACE_HEADER } from '../namespace.ts';
import {
  BackendError,
  failureOf,
  timedOut,
  unexpectedReply,
  unreachable,
  type Write,
} from './backend-error.ts';
import { type BackendReply, type BackendRequest, ReplyTooLongError, type Transport } from './transport.ts';

export interface BackendCall {
  readonly method: BackendRequest['method'];
  /** Path below `/api/memory`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
  /** Undefined: the namespace of the backend's key, or `default`. */
  readonly namespace?: string | undefined;
  /** Set if the call stores data. */
  readonly write?: Write;
  /** Timeout of the whole call including its retry, in ms. */
  readonly timeout: number;
  /** Aborted when the client disconnects or cancels. */
  readonly signal: AbortSignal;
}

/** The memory backend, as used by the tools. */
export interface Backend {
  /**
   * Calls an endpoint, retries once after a failure that may have been the connection's, and returns the JSON of the
   * response.
   *
   * @throws BackendError with a text for the client; the signal's reason when it was aborted
   */
  call(call: BackendCall): Promise<unknown>;
}

/** Failures before a request was sent, which therefore had no effect. */
const NOT_ARRIVED = new Set([
  'ECONNREFUSED',
  // A Unix socket that is not there.
  'ENOENT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** @param key bearer token of the backend, if it requires one */
export function createBackend(transport: Transport, key?: string): Backend {
  return {
    async call({ method, path, query, body, namespace, write, timeout, signal }) {
      const late = AbortSignal.timeout(timeout);
      const request = {
        method,
        path: query === undefined ? path : `${path}?${new URLSearchParams(query)}`,
        headers: {
          ...headersOf(body, write, key),
          ...(namespace === undefined ? {} : { [NAMESPACE_HEADER]: namespace }),
        },
        body: body === undefined ? undefined : JSON.stringify(body),
        signal: AbortSignal.any([signal, late]),
      };
      try {
        const reply = await sendWithRetry(transport, request);
        const failure = failureOf(reply, write);
        if (failure !== undefined) throw failure;
        return parseJson(reply.text);
      } catch (error) {
        if (error instanceof BackendError) throw error;
        signal.throwIfAborted();
        if (late.aborted) throw timedOut(timeout, write);
        const cause = error instanceof MayHaveArrivedError ? error.cause : error;
        if (cause instanceof SyntaxError || cause instanceof ReplyTooLongError) throw unexpectedReply(write);
        throw unreachable(transport.origin, !notArrived(error), write);
      }
    },
  };
}

/** The same backend, with every call in one namespace. */
export const inNamespace = (backend: Backend, namespace: string | undefined): Backend => ({
  call: (call) => backend.call({ ...call, namespace }),
});

/** The key makes the retry of a write harmless: the backend recognizes it and stores nothing twice. */
function headersOf(body: object | undefined, write: Write | undefined, key: string | undefined) {
  return {
    accept: 'application/json',
    'x-request-id': randomUUID(),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...(write === undefined ? {} : { 'idempotency-key': randomUUID() }),
    ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
  };
}

/** Sends the request, and retries once if that may help. Rejects with the second error. */
async function sendWithRetry(transport: Transport, request: BackendRequest): Promise<BackendReply> {
  let first: unknown;
  try {
    const reply = await transport.send(request);
    if (reply.status !== 502 && reply.status !== 503) return reply;
  } catch (error) {
    if (request.signal.aborted || error instanceof ReplyTooLongError) throw error;
    first = error;
  }
  const delay = MEMORY_API_LIMITS.retryDelay * (1 + Math.random());
  await pause(delay, undefined, { signal: request.signal });
  try {
    return await transport.send(request);
  } catch (error) {
    // A refused connection in the second attempt does not undo what the first one may have done.
    throw notArrived(first) ? error : new MayHaveArrivedError('', { cause: error });
  }
}

class MayHaveArrivedError extends Error {}

function notArrived(error: unknown): boolean {
  // Node.js wraps the failures of several addresses of one name.
  const errors: readonly unknown[] = error instanceof AggregateError ? error.errors : [error];
  return errors.every((each) => NOT_ARRIVED.has(errorCode(each)));
}
