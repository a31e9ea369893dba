import { isUtf8 } from 'node:buffer';
import { isOver, repeatedMember, shownName, structureOf } from '../../core/json-members.ts';
import { LIMITS } from '../../core/limits.ts';
import { type Edit, edit, members, type Span } from '../kernel/json-text.ts';
import type { CallBody } from './call-body.ts';
import { llmError } from './errors.ts';

type Member = readonly [key: string, value: Span];

/**
 * A JSON request body that keeps its text: numbers, order and unknown members reach the provider as the client
 * wrote them; only members that somebody set or removed change.
 */
export class LlmBody implements CallBody {
  readonly isReadable = true;
  readonly contentType = undefined;
  readonly files = 0;
  readonly value: Readonly<Record<string, unknown>>;
  readonly #text: string;
  readonly #members: readonly Member[];
  readonly #changes = new Map<string, string | undefined>();

  private constructor(text: string, value: LlmBody['value'], present: readonly Member[]) {
    this.#text = text;
    this.value = value;
    this.#members = present;
  }

  /** Throws an `AppError` with an OpenAI-style body when the bytes are no JSON object with unambiguous members. */
  static parse(bytes: Buffer): LlmBody {
    const invalid = (why: string): Error =>
      llmError('llm_invalid', 'invalid_request_body', `LLM request body must be valid JSON: ${why}`);
    if (!isUtf8(bytes)) throw invalid('it is not UTF-8');
    const text = bytes.toString('utf8');
    const structure = structureOf(text, LIMITS.jsonDepth, LIMITS.jsonKeys);
    if (isOver(structure, LIMITS.jsonDepth, LIMITS.jsonKeys))
      throw invalid(`it nests deeper than ${LIMITS.jsonDepth} or has more than ${LIMITS.jsonKeys} members`);
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      throw invalid('it does not parse');
    }
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw invalid('it is not an object');
    // A guardrail would read the last of two equal members, and the provider perhaps the first.
    const repeated = repeatedMember(text, value, structure);
    if (repeated !== undefined) throw invalid(`the member ${shownName(repeated)} stands twice in one object`);
    return new LlmBody(text, value as Record<string, unknown>, members(text));
  }

  /** The same request without the changes so far. */
  unchanged(): LlmBody {
    return new LlmBody(this.#text, this.value, this.#members);
  }

  /** The value of a member after the changes so far; undefined when it is absent. */
  get(key: string): unknown {
    if (!this.#changes.has(key)) return this.value[key];
    const changed = this.#changes.get(key);
    return changed === undefined ? undefined : (JSON.parse(changed) as unknown);
  }

  has(key: string): boolean {
    return this.#changes.has(key) ? this.#changes.get(key) !== undefined : Object.hasOwn(this.value, key);
  }

  set(key: string, value: unknown): void {
    this.#changes.set(key, JSON.stringify(value));
  }

  remove(key: string): void {
    this.#changes.set(key, undefined);
  }

  encode(): string {
    return this.toString();
  }

  /** The text with the changes applied; the client's own when there are none. */
  toString(): string {
    if (this.#changes.size === 0) return this.#text;
    const present = this.#members;
    const edits: Edit[] = [];
    const kept = new Set(this.#changes.keys());
    for (const [key, span] of present) {
      if (!this.#changes.has(key)) continue;
      kept.delete(key);
      const text = this.#changes.get(key);
      if (text !== undefined) edits.push({ ...span, text });
    }
    if (this.#removedCount() > 0) {
      const marked = present.map(([key, span]) => ({ span, goes: this.#isRemoved(key) }));
      edits.push(...removals(this.#text, marked));
    }
    const changed = edits.length === 0 ? this.#text : edit(this.#text, edits);
    const added = [...kept].flatMap((key) => {
      const text = this.#changes.get(key);
      return text === undefined ? [] : [`${JSON.stringify(key)}:${text}`];
    });
    const remaining = present.length - this.#removedCount();
    return insertMembers(changed, added, remaining === 0);
  }

  /** Members of the text that go. */
  #removedCount(): number {
    let count = 0;
    for (const [key] of this.#members) if (this.#isRemoved(key)) count += 1;
    return count;
  }

  #isRemoved(key: string): boolean {
    return this.#changes.has(key) && this.#changes.get(key) === undefined;
  }
}

/** Cuts members out, each with one comma; what stays keeps its spelling, keys and spaces included. */
function removals(text: string, present: readonly { readonly span: Span; readonly goes: boolean }[]): Edit[] {
  const edits: Edit[] = [];
  const firstKept = present.findIndex(({ goes }) => !goes);
  // Those before the first one that stays take the comma after them, the others the comma before.
  const leading = firstKept === -1 ? present.length : firstKept;
  const lastLeading = present[leading - 1];
  if (lastLeading !== undefined) {
    const after = lastLeading.span.end;
    const end = firstKept === -1 ? after : text.indexOf(',', after) + 1;
    edits.push({ start: text.indexOf('{') + 1, end, text: '' });
  }
  for (const [index, { span, goes }] of present.entries()) {
    if (!goes || index < leading) continue;
    edits.push({ start: (present[index - 1] as { span: Span }).span.end, end: span.end, text: '' });
  }
  return edits;
}

function insertMembers(text: string, added: readonly string[], isEmpty: boolean): string {
  if (added.length === 0) return text;
  const at = text.lastIndexOf('}');
  return `${text.slice(0, at)}${isEmpty ? '' : ','}${added.join(',')}${text.slice(at)}`;
}
