import { shownValue } from './foreign.ts';
import { LIMITS } from './limits.ts';
import { byForm } from './redact.ts';

/** What is logged of an internal error. */
export interface InternalErrorReport {
  /** The error with its stack, without credentials. */
  readonly problem: string;
  /** Errors at the same place that were not logged since the last report of it; undefined if there were none. */
  readonly notLogged: number | undefined;
}

/**
 * Errors of the program's own code that were contained: they ended one call, one message or one log line, and not the
 * process. Each is counted. A place is logged once per `LIMITS.internalErrorInterval`, because whoever provokes an error
 * may do so with every message.
 */
export class InternalErrors {
  /** By place in the code. Bounded by `LIMITS.internalErrorPlaces`; further places share one entry. */
  readonly #places = new Map<string, { loggedAt: number; notLogged: number }>();
  #count = 0;

  /** Errors since the start. */
  get count(): number {
    return this.#count;
  }

  /** Counts an error. Returns what to log of it; undefined if its place was logged less than the interval ago. */
  add(scope: string, error: unknown): InternalErrorReport | undefined {
    this.#count += 1;
    const frames = framesOf(error);
    const place = this.#placeOf(`${scope} ${firstFrame(frames)}`);
    const now = performance.now();
    if (now - place.loggedAt < LIMITS.internalErrorInterval) {
      place.notLogged += 1;
      return undefined;
    }
    const notLogged = place.notLogged === 0 ? undefined : place.notLogged;
    place.loggedAt = now;
    place.notLogged = 0;
    return { problem: summaryOf(error) + frames, notLogged };
  }

  #placeOf(key: string): { loggedAt: number; notLogged: number } {
    const isKnown = this.#places.has(key) || this.#places.size < LIMITS.internalErrorPlaces;
    const bounded = isKnown ? key : 'others';
    const known = this.#places.get(bounded);
    if (known !== undefined) return known;
    const added = { loggedAt: Number.NEGATIVE_INFINITY, notLogged: 0 };
    this.#places.set(bounded, added);
    return added;
  }
}

/**
 * Class and message without credentials. The message may quote what a server sent. It is cut once credentials are removed,
 * because a part of one would not be recognized. Never throws.
 */
function summaryOf(error: unknown): string {
  try {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : shownValue(error);
    return byForm.line(text.slice(0, LIMITS.loggedErrorMessage)).slice(0, LIMITS.internalErrorMessage);
  } catch {
    return 'an error that cannot be shown';
  }
}

/** The frames of a stack. They follow the message, which could contain a text that looks like one. */
function framesOf(error: unknown): string {
  if (!(error instanceof Error) || typeof error.stack !== 'string') return '';
  const { stack, message } = error;
  const start = stack.indexOf('\n    at ', Math.max(0, stack.indexOf(message)) + message.length);
  return start === -1 ? '' : stack.slice(start);
}

/** Where the error was thrown: its message may differ each time. */
const firstFrame = (frames: string): string => /^ {4}at .*$/m.exec(frames)?.[0] ?? '';
