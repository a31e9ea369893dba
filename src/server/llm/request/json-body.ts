import { isUtf8 } from 'node:buffer';
import { isRecord, jsonIn, parseJson } from '../../../core/foreign.ts';
import { isOver, repeatedMember, shownName, structureOf } from '../../../core/json-members.ts';
import { LIMITS } from '../../../core/limits.ts';
import { writeChanged } from '../../kernel/json/changed-json.ts';
import { type Edit, edit, members, type Span } from '../../kernel/json/json-text.ts';
import { llmError } from '../errors.ts';
import type { CallBody } from './call-body.ts';

type Member = readonly [key: string, value: Span];

/**
 * A JSON request body that preserves its text: numbers, member order and unknown members reach the provider as the
 * client wrote them. Only members that are set or removed change.
 */
export class JsonBody implements CallBody {
  readonly isReadable = true;
  readonly contentType = undefined;
  readonly files = 0;
  readonly value: Readonly<Record<string, unknown>>;
  readonly #text: string;
  /** Positions of the members, once they are needed. */
  #members: readonly Member[] | undefined;
  readonly #changes = new Map<string, string | undefined>();

  private constructor(text: string, value: JsonBody['value'], present?: readonly Member[]) {
    this.#text = text;
    this.value = value;
    this.#members = present;
  }

  /**
   * Parses a body. Throws an `AppError` (400) unless it is a UTF-8 JSON object without duplicate members, within
   * `LIMITS.jsonDepth`, `LIMITS.jsonKeys` and `LIMITS.llmItems`. Other requests run between the steps of a large body.
   */
  static async parse(bytes: Buffer): Promise<JsonBody> {
    const step = bytes.length > LIMITS.llmSmallBody ? turn : undefined;
    if (!isUtf8(bytes)) throw invalid('it is not UTF-8');
    const text = bytes.toString('utf8');
    await step?.();
    const { jsonDepth: depth, jsonKeys: keys, llmItems: items } = LIMITS;
    const structure = structureOf(text, depth, keys, items);
    if (isOver(structure, depth, keys, items))
      throw invalid(`it nests deeper than ${depth}, or has more than ${keys} members or ${items} items`);
    await step?.();
    const value = jsonIn(text);
    if (value === undefined) throw invalid('it does not parse');
    if (!isRecord(value)) throw invalid('it is not an object');
    await step?.();
    // Of duplicate members a guardrail would read the last, but the provider perhaps the first.
    const repeated = repeatedMember(text, value, structure);
    if (repeated !== undefined) throw invalid(`duplicate member ${shownName(repeated)} in one object`);
    return new JsonBody(text, value);
  }

  /** The request without changes. */
  original(): JsonBody {
    return new JsonBody(this.#text, this.value, this.#members);
  }

  fields(): string[] {
    const names = new Set([...Object.keys(this.value), ...this.#changes.keys()]);
    return [...names].filter((name) => !this.#isRemoved(name));
  }

  /** The current value of a member; undefined if it is absent. */
  get(key: string): unknown {
    if (!this.#changes.has(key)) return this.value[key];
    const changed = this.#changes.get(key);
    return changed === undefined ? undefined : parseJson(changed);
  }

  has(key: string): boolean {
    return this.#changes.has(key) ? this.#changes.get(key) !== undefined : Object.hasOwn(this.value, key);
  }

  /** Changes a member. Inside it, what is the same as before keeps its text, too. */
  set(key: string, value: unknown): void {
    const before = typeof value === 'object' && value !== null ? this.get(key) : undefined;
    const text = typeof before === 'object' && before !== null ? this.#textOf(key) : undefined;
    this.#changes.set(key, text === undefined ? JSON.stringify(value) : writeChanged(text, before, value));
  }

  #textOf(key: string): string | undefined {
    if (this.#changes.has(key)) return this.#changes.get(key);
    this.#members ??= members(this.#text);
    const span = this.#members.find(([name]) => name === key)?.[1];
    return span && this.#text.slice(span.start, span.end);
  }

  remove(key: string): void {
    this.#changes.set(key, undefined);
  }

  encode(): string {
    return this.toString();
  }

  /** The text with all changes applied; without changes, the client's text. */
  toString(): string {
    if (this.#changes.size === 0) return this.#text;
    this.#members ??= members(this.#text);
    const present = this.#members;
    const edits: Edit[] = [];
    const added = new Map(this.#changes);
    let removed = 0;
    for (const [key, span] of present) {
      if (!this.#changes.has(key)) continue;
      added.delete(key);
      const text = this.#changes.get(key);
      if (text === undefined) removed += 1;
      else edits.push({ ...span, text });
    }
    if (removed > 0) {
      const marked = present.map(([key, span]) => ({ span, isRemoved: this.#isRemoved(key) }));
      edits.push(...removals(this.#text, marked));
    }
    const changed = edits.length === 0 ? this.#text : edit(this.#text, edits);
    const insertions: string[] = [];
    for (const [key, text] of added)
      if (text !== undefined) insertions.push(`${JSON.stringify(key)}:${text}`);
    return insertMembers(changed, insertions, present.length === removed);
  }

  #isRemoved(key: string): boolean {
    return this.#changes.has(key) && this.#changes.get(key) === undefined;
  }
}

const invalid = (why: string): Error =>
  llmError('llm_invalid', 'invalid_request_body', `LLM request body must be valid JSON: ${why}`);

/** Lets other requests run. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Edits that remove members, each with one comma. The rest keeps its spelling, including keys and spaces. */
function removals(
  text: string,
  present: readonly { readonly span: Span; readonly isRemoved: boolean }[],
): Edit[] {
  const edits: Edit[] = [];
  const firstKept = present.findIndex(({ isRemoved }) => !isRemoved);
  // Members before the first kept one are removed with the comma after them, others with the comma before.
  const leading = firstKept === -1 ? present.length : firstKept;
  const lastLeading = present[leading - 1];
  if (lastLeading !== undefined) {
    const after = lastLeading.span.end;
    const end = firstKept === -1 ? after : text.indexOf(',', after) + 1;
    edits.push({ start: text.indexOf('{') + 1, end, text: '' });
  }
  for (const [index, { span, isRemoved }] of present.entries()) {
    if (!isRemoved || index < leading) continue;
    const before = present[index - 1]?.span.end ?? 0;
    edits.push({ start: before, end: span.end, text: '' });
  }
  return edits;
}

function insertMembers(text: string, added: readonly string[], isEmpty: boolean): string {
  if (added.length === 0) return text;
  const at = text.lastIndexOf('}');
  return `${text.slice(0, at)}${isEmpty ? '' : ','}${added.join(',')}${text.slice(at)}`;
}
