import { parseJson } from '../../../core/foreign.ts';
import { clientFormatOf, type FormatKey } from '../formats/index.ts';
import { membersOf } from '../json-members.ts';
import type { TextPath } from '../texts.ts';

/**
 * Recognizes texts of a response that the request had, too. A guardrail for responses is not about what the client wrote, such
 * as its own instructions. Any other text in the same members is read.
 */
export class Echo {
  readonly #members: ReadonlySet<string | number>;
  readonly #request: () => string;
  #sent: Set<string> | undefined;

  private constructor(members: ReadonlySet<string | number>, request: () => string) {
    this.#members = members;
    this.#request = request;
  }

  /** Undefined for formats that repeat nothing. `request`: the JSON text of the request as it was sent. */
  static of(format: FormatKey | undefined, request: () => string): Echo | undefined {
    const members = clientFormatOf(format)?.repeatedFields;
    return members && new Echo(members, request);
  }

  /** Whether a text at this path of the response repeats the request. */
  repeats(text: string, path: TextPath): boolean {
    const [member] = path;
    if (member === undefined || !this.#members.has(member)) return false;
    this.#sent ??= stringsIn(parseJson(this.#request()));
    const sent = this.#sent;
    // The keys of metadata are one text.
    return sent.has(text) || text.split('\n').every((key) => sent.has(key));
  }
}

/** Every string and key in a value. */
function stringsIn(value: unknown, found = new Set<string>()): Set<string> {
  if (typeof value === 'string') found.add(value);
  const members = membersOf(value);
  if (members === undefined) return found;
  for (const [key, inner] of Object.entries(members)) {
    found.add(key);
    stringsIn(inner, found);
  }
  return found;
}
