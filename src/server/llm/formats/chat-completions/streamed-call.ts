import type { StartedPart } from '../../chat/chat.ts';
import { type Json, Untranslatable } from '../../chat/chat-format.ts';
import { countOf, isEmpty, objectOf, textOf } from '../../chat/event-data.ts';
import { argumentsText } from '../../chat/tool-arguments.ts';
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

  constructor(index: number) {
    this.index = index;
  }

  /** Adds a delta. Returns its arguments. */
  add(value: Json): string {
    const custom = isEmpty(value['custom']) ? undefined : objectOf(value['custom']);
    const tool = custom ?? objectOf(value['function']) ?? {};
    this.#isCustom ||= custom !== undefined;
    this.id ??= textOf(value['id']);
    this.#signature ??= signatureOf(value['extra_content'], value['provider_specific_fields']);
    if (this.part === undefined) this.#addName(textOf(tool['name']) ?? '');
    const args = custom === undefined ? tool['arguments'] : tool['input'];
    const text = argumentsText(args);
    this.#arguments += text;
    this.#hasArguments ||= text !== '';
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

  /** Whether its name is complete: arguments follow it. */
  get isReady(): boolean {
    return this.#name !== '' && this.#hasArguments;
  }

  /** Whether nothing of a call has arrived, only what other servers send beside it. */
  get isOnlyMetadata(): boolean {
    return this.#name === '' && !this.#hasArguments && this.id === undefined;
  }

  /** Throws `Untranslatable` if it has no name. */
  start(missingId: string, path: string): StartedPart {
    if (this.#name === '') throw new Untranslatable(`${path}.delta.tool_calls.function.name`, 'is missing');
    const id = toolCallId(this.id ?? missingId, this.#signature);
    const call = { type: 'toolCall' as const, id, name: this.#name };
    return this.#isCustom ? { ...call, isCustom: true } : call;
  }

  /** Arguments that are not written yet. */
  takeArguments(): string {
    const text = this.#arguments;
    this.#arguments = '';
    return text;
  }
}

/** The call that a delta belongs to; undefined if it begins one. */
export function callOf(calls: readonly StreamedCall[], index: number, value: Json): StreamedCall | undefined {
  const id = textOf(value['id']);
  const last = calls.findLast((call) => call.index === index);
  if (last === undefined) return undefined;
  if (id !== undefined && last.id !== undefined && id !== last.id)
    // Some servers number all calls with 0, but each has its own id.
    return calls.find((call) => call.index === index && call.id === id);
  // Others give calls neither an id nor a number.
  const name = textOf(objectOf(value['function'])?.['name']);
  const isUnnumbered = id === undefined && countOf(value['index']) === undefined;
  const isOther = isUnnumbered && name !== undefined && last.hasArguments && !last.name.startsWith(name);
  return isOther && last.name !== '' ? undefined : last;
}
