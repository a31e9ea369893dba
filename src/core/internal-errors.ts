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
    const stack = stackOf(error);
    const place = this.#placeOf(`${scope} ${firstFrame(stack)}`);
    const now = performance.now();
    if (now - place.loggedAt < LIMITS.internalErrorInterval) {
      place.notLogged += 1;
      return undefined;
    }
    const notLogged = place.notLogged === 0 ? undefined : place.notLogged;
    place.loggedAt = now;
    place.notLogged = 0;
    return { problem: withoutCredentials(stack), notLogged };
  }

  #placeOf(key: string): { loggedAt: number; notLogged: number } {
    const bounded = this.#places.size < LIMITS.internalErrorPlaces ? key : (this.#known(key) ?? 'others');
    const known = this.#places.get(bounded);
    if (known !== undefined) return known;
    const added = { loggedAt: Number.NEGATIVE_INFINITY, notLogged: 0 };
    this.#places.set(bounded, added);
    return added;
  }

  #known(key: string): string | undefined {
    return this.#places.has(key) ? key : undefined;
  }
}

/** The message of an error may quote what a server sent: only its start is kept, and the frames that follow it. */
function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error).slice(0, LIMITS.internalErrorMessage);
  const { stack = '', message } = error;
  const frames = stack.slice(stack.indexOf('\n    at ') + 1);
  return `${error.name}: ${message.slice(0, LIMITS.internalErrorMessage)}\n${frames}`;
}

/** Whoever reports an error has nobody to report another to. */
function withoutCredentials(stack: string): string {
  try {
    return byForm.line(stack);
  } catch {
    return firstFrame(stack).trim();
  }
}

/** Where the error was thrown: its message may differ each time. */
const firstFrame = (stack: string): string => /^ {4}at .*$/m.exec(stack)?.[0] ?? '';
