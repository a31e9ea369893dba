import { isDeepStrictEqual } from 'node:util';
import { membersOf } from '../../core/foreign.ts';
import { Slot, type SlotHolder } from './slot.ts';

/**
 * What a policy says of a credential: what it knows of it, or undefined if it lets nobody in with it. A rejection is no answer:
 * what has begun goes on.
 */
type Find = (credential: string) => unknown;

/**
 * A policy that lets callers in by a credential, as those see it who were let in: also after a reload, which may have put another
 * policy in its place.
 */
export class Admitter {
  readonly standing: StandingWork | undefined;
  #find: Find;
  #successor: Admitter | undefined;

  constructor(settings: SlotHolder, find: Find) {
    this.standing = standingWork.get(settings);
    this.#find = find;
  }

  /** Says of a request that its caller was let in by a credential of which the policy knows `as`. */
  admit(ctx: SlotHolder, credential: string, as: unknown): void {
    admission.set(ctx, { by: this, credential, as });
  }

  find(credential: string): unknown {
    return this.#current().#find(credential);
  }

  /** Called on reload with what takes its place, if anything does. */
  replacedBy(successor: Admitter | undefined): void {
    this.#successor = successor;
    // It would keep the previous configuration in memory.
    this.#find = nobody;
  }

  #current(): Admitter {
    if (this.#successor === undefined) return this;
    this.#successor = this.#successor.#current();
    return this.#successor;
  }
}

const nobody = (): undefined => undefined;

/** The parts of a policy with an admitter. */
export const admitting = (admitter: Admitter) => ({
  admitter,
  replacedBy: (successor: unknown) => {
    const next = membersOf(successor)['admitter'];
    admitter.replacedBy(next instanceof Admitter ? next : undefined);
  },
});

/** That a caller was let in by a credential, of which the policy knew `as`. */
export interface Admission {
  readonly by: Admitter;
  readonly credential: string;
  readonly as: unknown;
}

/** Of a request that a policy has let in by a credential that can be taken back. */
const admission = new Slot<Admission>();

/**
 * What goes on without new requests, such as sessions and their streams: it ends soon after the caller would no longer be let in, or
 * no longer as the same. One for each process, which asks the policies at intervals: that covers keys that were revoked at another
 * gateway, have expired or were edited, and configurations without them.
 */
export class StandingWork {
  readonly #interval: number;
  readonly #works = new Set<{ readonly of: Admission; readonly end: () => void }>();
  #timer: NodeJS.Timeout | undefined;
  #isChecking = false;

  /** `interval` in ms. */
  constructor(interval: number) {
    this.#interval = interval;
  }

  /** Calls `end` once, when the caller is no longer let in. The returned function ends that. */
  add(of: Admission, end: () => void): () => void {
    const work = { of, end };
    this.#works.add(work);
    this.#timer ??= setInterval(() => void this.#check(), this.#interval).unref();
    return () => {
      this.#works.delete(work);
      if (this.#works.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  }

  async #check(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    // Each credential once: it may be looked up in another process.
    const answers = new Map<Admitter, Map<string, unknown>>();
    try {
      for (const work of [...this.#works]) {
        const { by, credential, as } = work.of;
        const known = answers.get(by) ?? new Map<string, unknown>();
        answers.set(by, known);
        if (!known.has(credential)) known.set(credential, await found(work.of));
        const current = known.get(credential);
        const isSame = current === UNKNOWN || (current !== undefined && isDeepStrictEqual(current, as));
        if (!isSame && this.#works.delete(work)) work.end();
      }
    } finally {
      this.#isChecking = false;
    }
  }
}

/** The policy cannot say, because its database or process does not answer. */
const UNKNOWN = Symbol('unknown');

async function found({ by, credential }: Admission): Promise<unknown> {
  try {
    return await by.find(credential);
  } catch {
    return UNKNOWN;
  }
}

/** That of a process. Set on the settings before policies are compiled. */
export const standingWork = new Slot<StandingWork>();

/**
 * Calls `end` once the caller of a request is no longer let in. Returns a function that stops that; undefined if the caller was
 * not let in by a credential that can be taken back.
 */
export function whileAdmitted(ctx: SlotHolder, end: () => void): (() => void) | undefined {
  const of = admission.get(ctx);
  return of?.by.standing?.add(of, end);
}
