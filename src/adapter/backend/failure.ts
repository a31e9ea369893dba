import { MEMORY_API_LIMITS } from '../../core/memory-limits.ts';
import type { BackendReply } from './transport.ts';

/** What came of a write that failed. */
export type Outcome = 'nothing stored' | 'unknown';

/** A call that did not work. The message is for the model: what happened, and whether to try again. */
export class BackendFailure extends Error {}

/** What a call wants to change, for the words about a failure; undefined when it only reads. */
export interface Write {
  /** Whether sending it once more does no harm. */
  readonly repeatable: boolean;
}

export function unreachable(origin: string, arrived: boolean, write: Write | undefined): BackendFailure {
  const what = arrived ? 'The connection to the memory backend broke' : 'Memory backend unreachable';
  return new BackendFailure(
    `${what} at ${origin}.${consequence(write, arrived ? 'unknown' : 'nothing stored')}`,
  );
}

export function timedOut(milliseconds: number, write: Write | undefined): BackendFailure {
  return new BackendFailure(
    `Memory backend did not answer within ${milliseconds / 1000} s.${consequence(write, 'unknown')}`,
  );
}

export function unexpectedReply(write: Write | undefined): BackendFailure {
  return new BackendFailure(
    `Memory backend gave an unexpected reply.${consequence(write, 'unknown')} Is MEMORY_API_URL the address of a memory backend?`,
  );
}

/** The failure that a status says, or undefined for a success. */
export function failureOf(reply: BackendReply, write: Write | undefined): BackendFailure | undefined {
  const { status } = reply;
  if (status >= 200 && status < 300) return undefined;
  if (status === 401 || status === 403) {
    return new BackendFailure(
      "Memory backend refused the adapter's credentials. MEMORY_API_KEY of adapter and backend must be the same.",
    );
  }
  if (status === 429) return new BackendFailure(`Memory backend is busy.${retryAfter(reply)}`);
  if (status >= 500) {
    const id = reply.headers['x-request-id'];
    const named =
      typeof id === 'string' && /^[\w.:-]{1,100}$/.test(id) ? `${status}, request id ${id}` : `${status}`;
    return new BackendFailure(`Memory backend failed (${named}).${consequence(write, 'unknown')}`);
  }
  const message = messageOf(reply.text);
  if (message !== undefined) return new BackendFailure(message);
  if (status === 413) return new BackendFailure('This is larger than the memory backend takes.');
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
  const after = headers['retry-after'];
  return typeof after === 'string' && /^\d{1,6}$/.test(after)
    ? ` Retry after ${after} s.`
    : ' Retry in a moment.';
}

/** `error.message` of an error body of ours; never the text of anything else, which may be a page or a stack. */
function messageOf(text: string): string | undefined {
  try {
    const body = JSON.parse(text) as { error?: { message?: unknown; details?: { near?: unknown } } } | null;
    const message = body?.error?.message;
    if (typeof message !== 'string' || message === '') return undefined;
    return message.slice(0, MEMORY_API_LIMITS.errorTextLength);
  } catch {
    return undefined;
  }
}
