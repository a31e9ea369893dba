import type { StartedPart } from '../../chat/chat.ts';
import { type Json, Untranslatable } from '../../chat/chat-format.ts';
import { countOf, isEmpty, objectOf, textOf } from '../../chat/event-data.ts';
import { ObjectEnd } from '../../chat/object-end.ts';
import { argumentsText, isPlaceholder } from '../../chat/tool-arguments.ts';
import { toolCallId } from '../../chat/tool-call-id.ts';
import { signatureOf } from './extra-content.ts';

/**
 * A tool call whose deltas arrive. Servers send its id, its name, a signature and its arguments in any order, and the name
 * also in pieces or again with each delta; other formats begin a call with its id and name (Claude Code with vLLM,
 * claude-code-router, Gemini's OpenAI-compatible API).
 */
export class StreamedCall {
  /** `index` of its deltas. */
  readonly index: number;
  id: string | undefined;
  /** The part that it is, once that has begun. */
  part: number | undefined;
  #name = '';
  #isCustom = false;
  #signature: string | undefined;
  /** Arguments that are not written yet. */
  #arguments = '';
  #hasArguments = false;
  /** Whether its arguments are only an empty object so far, which others may follow. */
  isPlaceholder = false;
  readonly #end = new ObjectEnd();

  constructor(index: number) {
    this.index = index;
  }

  /** Adds a delta. Returns its arguments. */
  add(value: Json): string {
    const custom = isEmpty(value['custom']) ? undefined : objectOf(value['custom']);
    const tool = custom ?? objectOf(value['function']) ?? {};
    this.#isCustom ||= custom !== undefined;
    this.id ??= idOf(value);
    this.#signature ??= signatureOf(value['extra_content'], value['provider_specific_fields']);
    if (this.part === undefined) this.#addName(textOf(tool['name']) ?? '');
    const args = custom === undefined ? tool['arguments'] : tool['input'];
    const text = argumentsText(args);
    const isFirst = !this.#hasArguments || this.isPlaceholder;
    this.#hasArguments ||= text !== '';
    if (custom === undefined && isFirst && isPlaceholder(text)) {
      this.isPlaceholder = true;
      return '';
    }
    if (text !== '') this.isPlaceholder = false;
    this.#arguments += text;
    this.#end.read(text);
    return text;
  }

  /** The next piece of the name, the name again, or all of it so far. */
  #addName(piece: string): void {
    this.#name = piece.startsWith(this.#name) ? piece : this.#name + piece;
  }

  get name(): string {
    return this.#name;
  }

  get hasArguments(): boolean {
    return this.#hasArguments;
  }

  /** Whether its arguments are a whole object: what follows is of another call. */
  get hasAllArguments(): boolean {
    return this.isPlaceholder || this.#end.isReached;
  }

  /** Whether its name is complete: arguments follow it. */
  get isReady(): boolean {
    return this.#name !== '' && this.#hasArguments;
  }

  /** Whether no name and no arguments have arrived, only what servers send beside them. */
  get isOnlyMetadata(): boolean {
    return this.#name === '' && !this.#hasArguments;
  }

  /** Throws `Untranslatable` if it has no name. */
  start(missingId: string, path: string): StartedPart {
    if (this.#name === '') throw new Untranslatable(`${path}.delta.tool_calls.function.name`, 'is missing');
    const id = toolCallId(this.id ?? missingId, this.#signature);
    const call = { type: 'toolCall' as const, id, name: this.#name };
    return this.#isCustom ? { ...call, isCustom: true } : call;
  }

  /** Arguments that are not written yet. `isEnd`: nothing follows. */
  takeArguments(isEnd: boolean): string {
    const text = isEnd && this.isPlaceholder ? '{}' : this.#arguments;
    this.#arguments = '';
    return text;
  }
}

/** The call that a delta belongs to; undefined if it begins one. */
export function callOf(calls: readonly StreamedCall[], index: number, value: Json): StreamedCall | undefined {
  const id = idOf(value);
  const last = calls.findLast((call) => call.index === index);
  if (last === undefined) return undefined;
  const { name: given, arguments: args } = objectOf(value['function']) ?? {};
  const name = textOf(given);
  const text = argumentsText(args);
  if (id !== undefined && last.id !== undefined && id !== last.id) {
    // Some servers number all calls with 0, but each has its own id; others give each delta an id of its own.
    const isBegun = last.isPlaceholder || (last.hasArguments && !last.hasAllArguments);
    const goesOn = name === undefined && isBegun;
    return calls.find((call) => call.index === index && call.id === id) ?? (goesOn ? last : undefined);
  }
  if (id !== undefined || name === undefined || last.name === '') return last;
  // Others number all calls with 0 and give them no ids (vercel/ai#18440), or neither an id nor a number.
  if (last.hasAllArguments && text.trimStart().startsWith('{')) return undefined;
  const isUnnumbered = countOf(value['index']) === undefined;
  return isUnnumbered && last.hasArguments && !last.name.startsWith(name) ? undefined : last;
}

/** The id that a delta names. Servers send blank ones for none. */
const idOf = ({ id }: Json): string | undefined => (textOf(id)?.trim() === '' ? undefined : textOf(id));
