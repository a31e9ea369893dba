import type { Limits } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import type { PinsState } from '../../kernel/inspection.ts';
import { looseName } from '../../kernel/loose-name.ts';
import { changesBetween, definitionOf, hashOf } from './definition.ts';
import { type Pin, type PinFile, pinOf } from './pin-file.ts';

/** A listed tool: its name at the target, and its definition as JSON text. */
interface Tool {
  readonly own: string;
  readonly text: string;
}

/** Where a list comes from: the connection to the server, and how many `list_changed` notifications came on it so far. */
export interface ListSource {
  readonly rpc: object | undefined;
  readonly changes: number;
}

/**
 * Whether tools of one connection match their pins, by the last lists. Valid until the list, the pins or a tool change, and
 * for `LIMITS.pinVerdictAge`.
 */
interface Checked {
  readonly changes: number;
  readonly revision: number;
  /** Time of the list, in ms of `performance.now()`. */
  listedAt: number;
  readonly matches: Map<string, boolean>;
  /** All pages were read, so a tool that is not here is not listed. */
  isComplete: boolean;
}

export interface ToolPinsOptions {
  readonly target: string;
  readonly file: PinFile;
  /** Whether changed tools are refused. Otherwise they are only reported. */
  readonly isEnforced: boolean;
  readonly log: Log;
  readonly limits: Limits;
  /** Counts a change. */
  readonly changed: () => void;
  /** Removes secrets from text of the target before it is logged. */
  readonly clean: (text: string) => string;
}

/** Tools of one page that were never listed before. */
class NewTools {
  readonly pins = new Map<string, Pin>();
  readonly #pinned: () => readonly string[];
  #byLooseName: ReadonlyMap<string, string> | undefined;

  /** `pinned`: names of the tools that are pinned already. */
  constructor(pinned: () => readonly string[]) {
    this.#pinned = pinned;
  }

  /** The pinned tool whose name differs from this one, which is not pinned, in no more than what some servers ignore. */
  resembled(own: string): string | undefined {
    this.#byLooseName ??= new Map(this.#pinned().map((name) => [looseName(name), name]));
    return this.#byLooseName.get(looseName(own));
  }
}

/**
 * Compares the tools of one target with their pinned definitions, and pins tools that were never listed before. Each change
 * is reported once, however many sessions see it.
 */
export class ToolPins {
  readonly #options: ToolPinsOptions;
  /** Hash of the last reported definition by tool. */
  readonly #reported = new Map<string, string>();
  /** Pinned tools of which it was reported that another tool has a name that resembles theirs. */
  readonly #resembled = new Set<string>();
  readonly #checked = new WeakMap<object, Checked>();
  #isOverLimit = false;
  /** Number of reported changes. */
  #changes = 0;

  constructor(options: ToolPinsOptions) {
    this.#options = options;
  }

  /** Changes with the pins and with every reported change of a tool, after which all tools must be listed again. */
  get revision(): number {
    return this.#options.file.revision + this.#changes;
  }

  get isEnforced(): boolean {
    return this.#options.isEnforced;
  }

  /** Checks one page of a list and pins its new tools. Returns the tools that clients may see. */
  check<T extends Tool>(tools: readonly T[], source: ListSource): T[] {
    const { file, target, isEnforced } = this.#options;
    file.refresh();
    const added = new NewTools(() => file.names(target));
    const matches = tools.map((tool) => this.#matches(tool, added));
    if (added.pins.size > 0) {
      file.add(target, added.pins);
      this.#options.log.info('mcp', 'tools were pinned', {
        target,
        tools: [...added.pins.keys()].join(', '),
      });
    }
    if (!isEnforced) return [...tools];
    // Not in the loop above: a change that it reports invalidates what was noted before.
    for (const [index, { own }] of tools.entries()) this.#note(source, own, matches[index] === true);
    return tools.filter((_tool, index) => matches[index]);
  }

  /**
   * Whether the last listed definition of a tool matches its pin. `unknown` if it was not listed on that connection, or too
   * long ago.
   */
  status(source: ListSource, own: string): 'accepted' | 'changed' | 'unlisted' | 'unknown' {
    this.#options.file.refresh();
    const checked = this.#known(source);
    if (checked === undefined) return 'unknown';
    const matches = checked.matches.get(own);
    if (matches !== undefined) return matches ? 'accepted' : 'changed';
    return checked.isComplete ? 'unlisted' : 'unknown';
  }

  /** For the admin server. */
  state(): PinsState {
    const { file, target, isEnforced, limits } = this.#options;
    // A tool that is pinned again, as it is now, was reported with the same hash.
    const changed = [...this.#reported].flatMap(([own, hash]) => {
      const pin = file.get(target, own);
      return pin === undefined || pin.hash === hash ? [] : [own];
    });
    return { isEnforced, pinned: file.count(target), changed: changed.slice(0, limits.shownToolChanges) };
  }

  /** All pages of the list were checked, with the same `revision`. */
  completed(source: ListSource): void {
    const checked = this.#checkedOf(source);
    if (checked === undefined) return;
    checked.isComplete = true;
    checked.listedAt = performance.now();
  }

  #matches({ own, text }: Tool, added: NewTools): boolean {
    const { file, target, limits } = this.#options;
    const pin = added.pins.get(own) ?? file.get(target, own);
    const resembled = pin === undefined ? added.resembled(own) : undefined;
    if (resembled !== undefined) {
      this.#reportResembling(own, resembled);
      return false;
    }
    if (pin === undefined && file.count(target) + added.pins.size >= limits.pinnedTools) {
      this.#reportLimit(own);
      return false;
    }
    const definition = definitionOf(text);
    if (pin === undefined) {
      added.pins.set(own, pinOf(definition, limits));
      return true;
    }
    const hash = hashOf(definition);
    if (pin.hash === hash) {
      this.#reported.delete(own);
      return true;
    }
    if (this.#reported.get(own) !== hash) {
      this.#reported.set(own, hash);
      this.#report(own, changesBetween(pin.definition, definition));
    }
    return false;
  }

  /** A server could evade rules by name with another form of the name. Once for each pinned tool: a server may list any number. */
  #reportResembling(own: string, pinned: string): void {
    if (this.#resembled.has(pinned)) return;
    this.#resembled.add(pinned);
    this.#report(
      own,
      `name: differs from that of the pinned tool ${JSON.stringify(pinned)} in case, white space or Unicode form only`,
    );
  }

  #report(tool: string, changes: string): void {
    this.#changes += 1;
    const { target, log, isEnforced, file, changed, clean } = this.#options;
    changed();
    const outcome = isEnforced ? 'it is hidden and calls to it are refused' : 'it is still offered';
    log.warn('mcp', `a tool has changed since it was pinned; ${outcome} until the pin is updated`, {
      target,
      tool,
      changes: clean(changes),
      pins: file.path,
    });
  }

  #reportLimit(tool: string): void {
    if (this.#isOverLimit) return;
    this.#isOverLimit = true;
    const { target, log, limits } = this.#options;
    log.warn('mcp', `target has more than ${limits.pinnedTools} tools; the rest cannot be pinned`, {
      target,
      tool,
    });
  }

  #note(source: ListSource, own: string, matches: boolean): void {
    const names = this.#checkedOf(source)?.matches;
    if (names === undefined || (names.size >= this.#options.limits.listedNames && !names.has(own))) return;
    names.set(own, matches);
  }

  #known({ rpc, changes }: ListSource): Checked | undefined {
    const known = rpc && this.#checked.get(rpc);
    const isCurrent =
      known?.changes === changes &&
      known.revision === this.revision &&
      performance.now() - known.listedAt < this.#options.limits.pinVerdictAge;
    return isCurrent ? known : undefined;
  }

  #checkedOf(source: ListSource): Checked | undefined {
    const { rpc, changes } = source;
    if (rpc === undefined) return undefined;
    const known = this.#known(source);
    if (known !== undefined) return known;
    const checked: Checked = {
      changes,
      revision: this.revision,
      listedAt: performance.now(),
      matches: new Map(),
      isComplete: false,
    };
    this.#checked.set(rpc, checked);
    return checked;
  }
}
