import { parseJson } from '../../../core/foreign.ts';
import type { FormatKey } from '../formats/index.ts';
import { membersOf } from '../json-members.ts';
import type { TextPath } from '../texts.ts';

/**
 * Members in which a response repeats the request: settings of `/v1/responses` (OpenAI's API reference, "The response object"),
 * and documents that were ranked. A guardrail for responses is not about what the client wrote, such as its own instructions.
 */
const ECHOES: Partial<Record<FormatKey, ReadonlySet<string | number>>> = {
  responses: new Set([
    'instructions',
    'tools',
    'tool_choice',
    'text',
    'metadata',
    'prompt',
    'user',
    'safety_identifier',
    'prompt_cache_key',
  ]),
  rerank: new Set(['results', 'data']),
};

/** Recognizes texts of a response that the request had, too. Any other text in the same members is read. */
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
    const members = format === undefined ? undefined : ECHOES[format];
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
