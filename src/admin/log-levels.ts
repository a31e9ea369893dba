import { LIMITS } from '../core/limits.ts';
import type { Log } from '../core/log.ts';
import { type Directive, directiveKey, LogDirectives, parseDirectives } from '../core/log-directives.ts';

/** A clause that is temporarily in effect. */
interface Temporary {
  /** The clause to restore; undefined if there was none. */
  readonly before: Directive | undefined;
  /** When it ends, in ms since 1970, and in ms of `performance.now()`, which clock changes do not affect. */
  readonly until: number;
  readonly due: number;
}

/** Log levels that `/logging` changes, permanently or temporarily. */
export class LogLevels {
  readonly #log: Log;
  #timer: NodeJS.Timeout | undefined;
  /** By key of the clause: at most as many as there are clauses now, or were before a reset. */
  readonly #temporary = new Map<string, Temporary>();

  constructor(log: Log) {
    this.#log = log;
  }

  get current(): string {
    return this.#log.directives.current;
  }

  /** When the last temporary change ends, in ms since 1970. */
  get until(): number | undefined {
    return this.#temporary.size === 0
      ? undefined
      : Math.max(...[...this.#temporary.values()].map(({ until }) => until));
  }

  /** The levels when all temporary changes have ended. */
  get afterwards(): string {
    const later = new LogDirectives(this.current);
    later.restore(new Map([...this.#temporary].map(([key, { before }]) => [key, before])));
    return later.current;
  }

  /**
   * Adds directives, optionally after a reset. With `milliseconds`, the clauses that this call changes, and no others,
   * are restored after that time. A clause that is changed permanently in the meantime keeps that change.
   *
   * @throws InvalidDirectives without changing anything
   */
  change(directives: string | undefined, reset: boolean, milliseconds: number | undefined): void {
    const now = this.current;
    const before = this.#log.directives.byKey();
    try {
      if (reset) this.#log.directives.reset();
      if (directives !== undefined) this.#log.directives.add(directives);
    } catch (error) {
      this.#log.directives.replace(now);
      throw error;
    }
    const wait = milliseconds === undefined ? undefined : Math.min(milliseconds, LIMITS.logLevelMaxDuration);
    for (const key of this.#touched(directives, reset, before)) {
      const known = this.#temporary.get(key);
      if (wait === undefined) this.#temporary.delete(key);
      else
        this.#temporary.set(key, {
          before: known === undefined ? before.get(key) : known.before,
          until: Date.now() + wait,
          due: performance.now() + wait,
        });
    }
    this.#arm();
    this.#say();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  /** Keys of the clauses that a change affects; a reset affects all. */
  #touched(
    directives: string | undefined,
    reset: boolean,
    before: ReadonlyMap<string, Directive>,
  ): ReadonlySet<string> {
    const named = directives === undefined ? [] : parseDirectives(directives).map(directiveKey);
    return new Set(
      reset
        ? [...named, ...before.keys(), ...this.#log.directives.byKey().keys(), ...this.#temporary.keys()]
        : named,
    );
  }

  #arm(): void {
    clearTimeout(this.#timer);
    if (this.#temporary.size === 0) return;
    const next = Math.min(...[...this.#temporary.values()].map(({ due }) => due));
    this.#timer = setTimeout(() => this.#back(), Math.max(1, Math.ceil(next - performance.now()))).unref();
  }

  #back(): void {
    const over = [...this.#temporary].filter(([, { due }]) => due <= performance.now());
    for (const [key] of over) this.#temporary.delete(key);
    this.#arm();
    if (over.length === 0) return;
    this.#log.directives.restore(new Map(over.map(([key, { before }]) => [key, before])));
    this.#say();
  }

  #say(): void {
    this.#log.info('agctl', `new log filter is ${this.current}`);
  }
}
