import type { Log } from '../../../core/log.ts';
import type { ToolName } from '../../kernel/probe.ts';
import { LOGGED_LENGTH } from './unmatched-names.ts';

/** Finds the names in `toolSearch` and `bundles` that no tool of any target has, which are probably misspelled. */
export class UnmatchedSettings {
  #names: readonly ToolName[];
  /** Targets whose whole list is not known yet. */
  readonly #waiting: Set<string>;

  constructor(names: readonly ToolName[], targets: readonly string[]) {
    this.#names = names;
    this.#waiting = new Set(targets);
  }

  /** A target has listed these tools, by the names that clients see. */
  listed(target: string, tools: readonly string[]): void {
    if (this.#names.length === 0) return;
    this.#names = this.#names.filter(({ matches }) => !tools.some((tool) => matches(target, tool)));
  }

  /** A target has listed all of its tools. Logs the remaining names, the first time that every target has. */
  completed(target: string, log: Log): void {
    if (!this.#waiting.delete(target) || this.#waiting.size > 0 || this.#names.length === 0) return;
    log.warn('mcp', 'names in `toolSearch` or `bundles` match no tool: correct or remove them', {
      names: this.#names
        .map(({ shown }) => shown)
        .join(', ')
        .slice(0, LOGGED_LENGTH),
    });
  }
}
