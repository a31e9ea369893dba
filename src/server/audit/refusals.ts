import type { Limits } from '../../core/limits.ts';
import { counted } from '../../core/render/counted.ts';
import type { Actor, AuditEvent, Origin } from './event.ts';

/** An event without its time. */
export type Change = Omit<AuditEvent, 'time' | 'gateway'>;

/** What is known of one caller in the current minute. */
interface CallerCount {
  readonly actor: Actor;
  readonly from: Origin | undefined;
  written: number;
  /** Refused attempts that were not written, by action. */
  readonly omitted: Map<string, number>;
}

/** Action of the events that say how many refused attempts of a caller were not written. */
const OMITTED = 'refusals.omitted';

/** Callers beyond those that are told apart. */
const OTHERS: Actor = { kind: 'unknown', name: 'other callers' };

/**
 * Decides which refused attempts are written: whoever may do nothing must neither fill the disk nor hide the attempts of others. So many of
 * each caller and of all together in a minute; at its end, `summarize` gets an event for each caller of whom some were not written.
 */
export class Refusals {
  readonly #limits: Limits;
  readonly #summarize: (change: Change) => void;
  readonly #callers = new Map<string, CallerCount>();
  #written = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(limits: Limits, summarize: (change: Change) => void) {
    this.#limits = limits;
    this.#summarize = summarize;
  }

  /** Whether a refused attempt of this caller would be written now. */
  takes(actor: Actor, from: Origin | undefined): boolean {
    return this.#takes(this.#callers.get(callerOf(actor, from))?.written ?? 0);
  }

  /** Counts a refused attempt. Returns whether it is to be written. */
  admit({ actor, from, action }: Change): boolean {
    this.#timer ??= setTimeout(() => this.close(), this.#limits.auditRefusalsInterval).unref();
    const caller = this.#countOf(actor, from);
    if (this.#takes(caller.written)) {
      caller.written += 1;
      this.#written += 1;
      return true;
    }
    caller.omitted.set(action, (caller.omitted.get(action) ?? 0) + 1);
    return false;
  }

  /** Ends the minute. */
  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const callers = [...this.#callers.values()].filter(({ omitted }) => omitted.size > 0);
    this.#callers.clear();
    this.#written = 0;
    for (const { actor, from, omitted } of callers) {
      const sum = [...omitted.values()].reduce((total, count) => total + count, 0);
      const actions = [...omitted].map(([action, count]) => `${action} (${count})`).join(', ');
      this.#summarize({
        action: OMITTED,
        outcome: 'refused',
        actor,
        from,
        detail: `${counted(sum, 'more attempt')} within a minute: ${actions}`,
      });
    }
  }

  #takes(written: number): boolean {
    const { auditRefusals, auditRefusalsPerCaller } = this.#limits;
    return written < auditRefusalsPerCaller && this.#written < auditRefusals;
  }

  #countOf(actor: Actor, from: Origin | undefined): CallerCount {
    const id = callerOf(actor, from);
    const isKnown = this.#callers.has(id) || this.#callers.size < this.#limits.auditCallers;
    const key = isKnown ? id : '';
    const known = this.#callers.get(key);
    if (known !== undefined) return known;
    const created: CallerCount = {
      actor: isKnown ? actor : OTHERS,
      from: isKnown ? from : undefined,
      written: 0,
      omitted: new Map(),
    };
    this.#callers.set(key, created);
    return created;
  }
}

/** Whoever is known by name counts together from wherever it comes. */
function callerOf({ kind, name, issuer }: Actor, from: Origin | undefined): string {
  // Names of programs of this machine are found out later.
  const isNamed = name !== undefined && kind !== 'local';
  return JSON.stringify(isNamed ? [kind, name, issuer ?? ''] : [kind, from?.address ?? '']);
}
