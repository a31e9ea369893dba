import { isDeepStrictEqual } from 'node:util';
import type { BodyWriter } from '../../core/body-writer.ts';
import { membersOf } from '../../core/foreign.ts';
import { Slot, type SlotHolder } from './slot.ts';

/**
 * What a policy says of a credential: what it knows of it, or undefined if it lets nobody in with it. A rejection is not an answer:
 * what has begun goes on.
 */
type Find = (credential: string) => unknown;

/** Why a policy lets nobody in any more with a credential, for the log; undefined if it knows no more than that. */
type Why = (credential: string) => string | undefined | Promise<string | undefined>;

/**
 * A policy that lets callers in by a credential, as those see it who were let in: also after a reload, which may have put another
 * policy in its place.
 */
export class Admitter {
  readonly standing: StandingWork | undefined;
  #find: Find;
  #why: Why;
  #successor: Admitter | undefined;

  constructor(settings: SlotHolder, find: Find, why: Why = nobody) {
    this.standing = standingWork.get(settings);
    this.#find = find;
    this.#why = why;
  }

  /** Says of a request that its caller was let in by a credential of which the policy knows `as`. */
  admit(ctx: SlotHolder, credential: string, as: unknown): void {
    const { revocable, until } = admission.get(ctx) ?? NOTHING;
    admission.set(ctx, {
      standing: this.standing,
      revocable: [...revocable, { by: this, credential, as }],
      until,
    });
  }

  find(credential: string): unknown {
    return this.#current().#find(credential);
  }

  /** Why nobody is let in any more with a credential, for the log. */
  async why(credential: string): Promise<string> {
    const known = await Promise.resolve(this.#current().#why(credential)).catch(nobody);
    return known ?? 'its credential is no longer accepted';
  }

  /** Called on reload with what takes its place, if anything does. */
  replacedBy(successor: Admitter | undefined): void {
    this.#successor = successor;
    // It would keep the previous configuration in memory.
    this.#find = nobody;
    this.#why = nobody;
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

/** That a caller was let in by a credential that can be taken back, of which the policy knew `as`. */
interface Revocable {
  readonly by: Admitter;
  readonly credential: string;
  readonly as: unknown;
}

/** By what a request was let in. */
interface Admission {
  readonly standing: StandingWork | undefined;
  readonly revocable: readonly Revocable[];
  /** When the first of the others, such as tokens, is no longer valid, in ms since 1970. */
  readonly until: number;
}

const NOTHING = { revocable: [], until: Number.POSITIVE_INFINITY };

const admission = new Slot<Admission>();

/** Says of a request that its caller was let in by a credential that is valid up to a time, in ms since 1970. */
export function admitUntil(ctx: SlotHolder, standing: StandingWork | undefined, time: number): void {
  const { revocable, until } = admission.get(ctx) ?? NOTHING;
  admission.set(ctx, { standing, revocable, until: Math.min(until, time) });
}

interface Work {
  readonly of: readonly Revocable[];
  readonly until: number;
  readonly end: End;
}

/** `why` is for the log: who has a credential that was taken back learns nothing of it. */
type End = (why: string) => void;

/**
 * What goes on without new requests, such as sessions and streams: it ends soon after the caller would no longer be let in, or
 * no longer as the same. One for each process, which asks the policies at intervals: that covers keys that were revoked at another
 * gateway, have expired or were edited, and configurations without them. Times of expiry are compared at the same intervals: a
 * timer of its own for each stream would cost memory, and end at once if it is more than 2^31 ms away.
 */
export class StandingWork {
  readonly #interval: number;
  readonly #works = new Set<Work>();
  #timer: NodeJS.Timeout | undefined;
  #isAsking = false;

  /** `interval` in ms. */
  constructor(interval: number) {
    this.#interval = interval;
  }

  /** Calls `end` once, when the caller is no longer let in, or at `until` (ms since 1970). The returned function ends that. */
  add(of: readonly Revocable[], until: number, end: End): () => void {
    const work = { of, until, end };
    this.#works.add(work);
    this.#timer ??= setInterval(() => this.#check(), this.#interval).unref();
    return () => {
      this.#works.delete(work);
      if (this.#works.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  }

  #check(): void {
    const now = Date.now();
    for (const work of [...this.#works]) if (work.until <= now) this.#end(work, 'its token has expired');
    // A database that does not answer delays only what is asked of it.
    if (!this.#isAsking) void this.#ask();
  }

  async #ask(): Promise<void> {
    this.#isAsking = true;
    // Each credential once: it may be looked up in another process.
    const answers = new Map<Admitter, Map<string, unknown>>();
    try {
      for (const work of [...this.#works])
        for (const revocable of work.of) {
          const why = this.#works.has(work) ? await whyRefused(revocable, answers) : undefined;
          if (why !== undefined) this.#end(work, why);
        }
    } finally {
      this.#isAsking = false;
    }
  }

  #end(work: Work, why: string): void {
    if (this.#works.delete(work)) work.end(why);
  }
}

/** Why a caller is not let in as before; undefined if it is. */
async function whyRefused(
  of: Revocable,
  answers: Map<Admitter, Map<string, unknown>>,
): Promise<string | undefined> {
  const { by, credential, as } = of;
  const known = answers.get(by) ?? new Map<string, unknown>();
  answers.set(by, known);
  if (!known.has(credential)) known.set(credential, await found(of));
  const current = known.get(credential);
  if (current === undefined) return by.why(credential);
  return current === UNKNOWN || isDeepStrictEqual(current, as)
    ? undefined
    : 'what is configured for its credential has changed';
}

/** The policy cannot say, because its database or process does not answer. */
const UNKNOWN = Symbol('unknown');

async function found({ by, credential }: Revocable): Promise<unknown> {
  try {
    return await by.find(credential);
  } catch {
    return UNKNOWN;
  }
}

/** That of a process. Set on the settings before policies are compiled. */
export const standingWork = new Slot<StandingWork>();

/**
 * Calls `end` once the caller of a request is no longer let in by a credential that can be taken back: for sessions, whose next
 * request brings a token of its own. Returns a function that stops that; undefined if there is no such credential.
 */
export function whileAdmitted(ctx: SlotHolder, end: End): (() => void) | undefined {
  const { standing, revocable } = admission.get(ctx) ?? NONE;
  return revocable.length === 0 ? undefined : standing?.add(revocable, Number.POSITIVE_INFINITY, end);
}

/** As `whileAdmitted`, for streams: `end` is also called when a credential of the request has expired. */
export function whileValid(ctx: SlotHolder, end: End): (() => void) | undefined {
  const { standing, revocable, until } = admission.get(ctx) ?? NONE;
  if (revocable.length === 0 && until === Number.POSITIVE_INFINITY) return undefined;
  return standing?.add(revocable, until, end);
}

/**
 * The response stands until one side ends it, as streams of events do that a client waits on for whatever comes: how long it took is no
 * latency.
 */
export const standingResponse = new Slot<true>();

/** As `whileValid`, up to the end of the response. The log of the request says why. */
export function endWithCredential(
  ctx: SlotHolder & {
    readonly response: Pick<BodyWriter, 'once' | 'destroyed'>;
    errorDetail: string | undefined;
  },
  end: () => void,
): void {
  standingResponse.set(ctx, true);
  if (ctx.response.destroyed) return;
  const stop = whileValid(ctx, (why) => {
    ctx.errorDetail ??= why;
    end();
  });
  if (stop !== undefined) ctx.response.once('close', stop);
}

const NONE: Admission = { ...NOTHING, standing: undefined };
