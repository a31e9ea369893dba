import type { Limits } from '../../../core/limits.ts';
import { looseName } from '../../kernel/loose-name.ts';
import type { Connection } from '../connection/connection.ts';
import type { Target } from '../connection/target.ts';
import type { NamedItem } from '../names/names.ts';
import type { ClientCall } from './call.ts';

/** Names of the tools that one target has listed, in any session. */
class ListedNames {
  readonly #limits: Limits;
  #names = new Set<string>();
  #loose = new Set<string>();
  /** Changes when names are forgotten, after which sessions must list again. */
  epoch = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  record(names: readonly string[]): void {
    for (const name of names) {
      if (this.#names.has(name)) continue;
      if (this.#names.size >= this.#limits.listedNames) {
        this.#names = new Set();
        this.#loose = new Set();
        this.epoch += 1;
      }
      this.#names.add(name);
      this.#loose.add(looseName(name));
    }
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  /** Whether a listed name differs from this one, which is not listed, in no more than what some servers ignore. */
  resembles(name: string): boolean {
    return this.#loose.has(looseName(name));
  }
}

const listed = new WeakMap<Target, ListedNames>();

export function listedNames(target: Target): ListedNames {
  const known = listed.get(target) ?? new ListedNames(target.limits);
  listed.set(target, known);
  return known;
}

/** Whether something decides on a tool by its name. Pins that are enforced refuse what is not listed themselves. */
const isDecidedByName = ({ access }: ClientCall, { tools, pins }: Target): boolean =>
  (access?.decidesByName === true || tools?.decidesByName === true) && pins?.isEnforced !== true;

/** Records the names under which a target lists tools, if something decides by them. */
export function recordListed(call: ClientCall, { target }: Connection, names: readonly string[]): void {
  if (isDecidedByName(call, target)) listedNames(target).record(names);
}

/** Whether a call needs `checkUnlisted`. */
export const isUnlisted = (
  call: ClientCall,
  { target }: Connection,
  { kind }: NamedItem,
  own: string,
): boolean => kind === 'tool' && isDecidedByName(call, target) && !listedNames(target).has(own);
