import { jsonIn, membersOf } from '../../core/foreign.ts';
import { MEMORY_API_LIMITS } from '../../core/memory-limits.ts';
import type { BackendReply } from './transport.ts';

/** The effect of a write that failed. */
export type Outcome = 'nothing stored' | 'unknown';

/** A failed call. The message is for the model: what happened, and whether to retry. */
export class BackendError extends Error {
  /** How the operator can fix it, for the log. */
  readonly help: string | undefined;

  constructor(message: string, help?: string) {
    super(message);
    this.help = help;
  }
}

/** Properties of a write, for the message about a failure; undefined for a call that only reads. */
export interface Write {
  /** Whether repeating the call is harmless. */
  readonly repeatable: boolean;
}

export function unreachable(origin: string, arrived: boolean, write: Write | undefined): BackendError {
  const what = arrived ? 'The connection to the memory backend was lost' : 'Memory backend unreachable';
  return new BackendError(
    `${what} at ${origin}.${consequence(write, arrived ? 'unknown' : 'nothing stored')}`,
    'start it with `agctl memory-backend serve`, or set MEMORY_API_URL to the address of one that runs',
  );
}

export function timedOut(milliseconds: number, write: Write | undefined): BackendError {
  return new BackendError(
    `Memory backend did not answer within ${milliseconds / 1000} s.${consequence(write, 'unknown')}`,
  );
}

export function unexpectedReply(write: Write | undefined): BackendError {
  return new BackendError(
    `Memory backend sent an unexpected response.${consequence(write, 'unknown')} Is MEMORY_API_URL the address of a memory backend?`,
  );
}

/** The failure that a status indicates, or undefined for a success. */
export function failureOf(reply: BackendReply, write: Write | undefined): BackendError | undefined {
  const { status } = reply;
  if (status < 300) return undefined;
  if (status === 403 && codeOf(reply.text) === 'forbidden') {
    return new BackendError("The memory backend's key of this adapter does not permit this namespace.");
  }
  if (status === 401 || status === 403) {
    return new BackendError(
      "Memory backend rejected the adapter's credentials. MEMORY_API_KEY of adapter and backend must be the same.",
    );
  }
  if (status === 429) return new BackendError(`Memory backend is busy.${retryAfter(reply)}`);
  if (status >= 500) {
    const id = reply.headers['x-request-id'];
    const named =
      typeof id === 'string' && /^[\w.:-]{1,100}$/.test(id) ? `${status}, request id ${id}` : `${status}`;
    // What a write says of a repetition is its consequence.
    const again = status === 503 && write === undefined ? retryAfter(reply) : consequence(write, 'unknown');
    return new BackendError(`Memory backend failed (${named}).${again}`);
  }
  const message = messageOf(reply.text);
  if (message !== undefined) return new BackendError(message);
  if (status === 413)
    return new BackendError('The document or text is larger than the memory backend accepts.');
  return unexpectedReply(write);
}

function consequence(write: Write | undefined, outcome: Outcome): string {
  if (write === undefined) return '';
  if (outcome === 'nothing stored') return ' Nothing was stored.';
  return write.repeatable
    ? ' Outcome unknown; safe to retry.'
    : ' Outcome unknown: it may have been stored, so a repetition could store it twice.';
}

function retryAfter({ headers }: BackendReply): string {
  const after = String(headers['retry-after']);
  return /^\d{1,6}$/.test(after) ? ` Retry after ${after} s.` : ' Retry in a moment.';
}

/**
 * `error.message` of the backend's own error bodies; never the text of anything else, which may be a page or a stack
 * trace.
 */
function messageOf(text: string): string | undefined {
  const message = errorOf(text)['message'];
  if (typeof message !== 'string' || message === '') return undefined;
  return message.slice(0, MEMORY_API_LIMITS.errorTextLength);
}

function codeOf(text: string): unknown {
  return errorOf(text)['code'];
}

function errorOf(text: string): Readonly<Record<string, unknown>> {
  return membersOf(membersOf(jsonIn(text))['error']);
}
