import type { Log } from '../../../core/log.ts';
import { namePattern } from './name-pattern.ts';

/** Entries of `targets[].tools` by their key, such as `exclude`. */
export type NamesByKey = Readonly<Record<string, readonly string[]>>;

/** Longest part of the entries that is logged, in characters. */
export const LOGGED_LENGTH = 500;

/** Finds the names and patterns of `targets[].tools` that no tool of the target has, which are probably misspelled. */
export class UnmatchedNames {
  #entries: { readonly shown: string; readonly matches: (name: string) => boolean }[];
  #isReported = false;

  constructor(names: NamesByKey) {
    this.#entries = Object.entries(names).flatMap(([key, all]) =>
      all.map((name) => ({ shown: `${key}: ${name}`, matches: namePattern([name]) })),
    );
  }

  /** The target has listed these tools, by its own names. */
  listed(names: readonly string[]): void {
    if (this.#entries.length > 0) this.#entries = this.#entries.filter(({ matches }) => !names.some(matches));
  }

  /** The entries without a tool so far, such as `exclude: drop_*`. */
  get entries(): readonly string[] {
    return this.#entries.map(({ shown }) => shown);
  }

  /** Logs the remaining entries, the first time that the target has listed all of its tools. */
  report(log: Log, target: string): void {
    if (this.#isReported) return;
    this.#isReported = true;
    if (this.#entries.length === 0) return;
    log.warn('mcp', 'names in `tools` of a target match none of its tools: correct or remove them', {
      target,
      names: this.entries.join(', ').slice(0, LOGGED_LENGTH),
    });
  }
}
