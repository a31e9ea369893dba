import { isRecord } from '../../../core/foreign.ts';
import { isExactNumber } from '../redaction.ts';

/** Names of members whose values a server mints, and clients repeat: ids, cursors, the state of a request. */
const NAMES = /^(?:id|requestState|\w*cursor|\w*(?:_id|Id))$/i;

/** Short values occur elsewhere by chance. */
const SHORTEST = 8;

/** Values that servers have minted, by those in their place in the recording: later requests repeat them. */
export class MintedValues {
  readonly #now = new Map<string, string>();

  /** Learns from an answer and the recorded one. */
  learn(recorded: unknown, found: unknown, name = ''): void {
    if (typeof recorded === 'string' && typeof found === 'string') {
      if (recorded !== found && recorded.length >= SHORTEST && NAMES.test(name))
        this.#now.set(recorded, found);
    } else if (Array.isArray(recorded) && Array.isArray(found))
      for (const [at, item] of recorded.entries()) this.learn(item, found[at], name);
    else if (isRecord(recorded) && isRecord(found))
      for (const [member, value] of Object.entries(recorded)) this.learn(value, found[member], member);
  }

  /** A value of a request in which recorded ones are replaced. */
  replaced(value: unknown): unknown {
    if (this.#now.size === 0) return value;
    if (typeof value === 'string') return this.#now.get(value) ?? value;
    if (Array.isArray(value)) return value.map((item) => this.replaced(item));
    if (!isRecord(value) || isExactNumber(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, this.replaced(member)]));
  }

  /** A path and query in which whole segments and parameters are replaced. */
  target(target: string): string {
    if (this.#now.size === 0) return target;
    return target.replaceAll(/[^/?&=]+/g, (part) => {
      const now = this.#now.get(part);
      return now === undefined ? part : encodeURIComponent(now);
    });
  }
}
