import { jsonIn } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import { type Members, membersOf } from '../json-members.ts';
import { ObjectEnd } from './object-end.ts';

/** A tool call requested by the model (`llm.toolCalls`). */
export interface ToolCall {
  readonly id?: string;
  readonly name?: string;
  /** Parsed if it is JSON, otherwise the text. */
  readonly arguments?: unknown;
}

/** The model's output (`llm.completion`): one text per choice, and tool calls. */
export interface Completion {
  readonly texts: readonly string[];
  readonly toolCalls: readonly ToolCall[];
}

/** The output in a list of items or content blocks: their texts joined, and their tool calls. Undefined if the value is not a list. */
export function completionOfItems(items: unknown): Completion | undefined {
  if (!Array.isArray(items)) return undefined;
  const texts = items.map(textOf).filter((text) => text !== '');
  return { texts: texts.length === 0 ? [] : [texts.join('')], toolCalls: callsIn(items) };
}

/** Tool calls in parts of `generateContent`. */
export function functionCallsIn(parts: readonly unknown[]): ToolCall[] {
  return parts.flatMap((part): ToolCall[] => {
    const { id, name, args } = membersOf(membersOf(part)?.['functionCall']) ?? {};
    if (typeof name !== 'string') return [];
    return [{ ...(typeof id === 'string' ? { id } : {}), name, arguments: args ?? {} }];
  });
}

/** Tool calls in any supported API: name and arguments inside `function`, or arguments in `input`. */
export function callsIn(items: unknown): ToolCall[] {
  if (!Array.isArray(items)) return [];
  return items.flatMap((item): ToolCall[] => {
    const call = membersOf(item) ?? {};
    const inner = membersOf(call['function']) ?? call;
    const given = inner['arguments'] ?? call['input'];
    if (typeof inner['name'] !== 'string' || given === undefined) return [];
    const id = call['call_id'] ?? call['id'];
    return [{ ...(typeof id === 'string' ? { id } : {}), name: inner['name'], arguments: parsed(given) }];
  });
}

function parsed(given: unknown): unknown {
  return typeof given === 'string' ? (jsonIn(given) ?? given) : given;
}

/** The text of a message, of its parts, or of one part; empty for other media. */
export function textOf(part: unknown): string {
  if (typeof part === 'string') return part;
  if (Array.isArray(part)) return part.map(textOf).join('');
  const { text, content, parts } = membersOf(part) ?? {};
  if (typeof text === 'string') return text;
  if (Array.isArray(parts)) return textOf(parts);
  return content === undefined ? '' : textOf(content);
}

/** The output with texts that together have at most `LIMITS.loggedPayload` characters. */
export function bounded({ texts, toolCalls }: Completion): Completion {
  let left: number = LIMITS.loggedPayload;
  const cut = (text: string): string => {
    const kept = text.length > left ? text.slice(0, left) : text;
    left -= kept.length;
    return kept;
  };
  return { texts: texts.map(cut), toolCalls };
}

/** What an event of a stream adds to the output. Members are those of a provider: of any type. */
export type StreamedOutput = readonly (
  | { readonly whole: Completion }
  | { readonly index: number; readonly text: unknown; readonly calls?: readonly StreamedCallPart[] }
)[];

/** A tool call, or the next part of one. Undefined `key`: the whole call. */
interface StreamedCallPart {
  readonly key?: string;
  readonly id: unknown;
  readonly name: unknown;
  readonly written: unknown;
}

interface StreamedCall {
  id?: string;
  name?: string;
  written: string;
  readonly end: ObjectEnd;
}

/** Assembles the output of a stream from its events, up to `LIMITS.loggedPayload` characters. */
export class StreamedCompletion {
  readonly #texts = new Map<number, string>();
  readonly #calls: StreamedCall[] = [];
  /** The last call of each key. */
  readonly #open = new Map<string, StreamedCall>();
  #left: number = LIMITS.loggedPayload;
  /** The complete output, if an event contains it. */
  #whole: Completion | undefined;

  readonly #read: (event: Members) => StreamedOutput;

  /** `read`: what an event adds, in the format of the stream. */
  constructor(read: (event: Members) => StreamedOutput) {
    this.#read = read;
  }

  /** Adds the data of one event. */
  add(data: string): void {
    if (this.#left <= 0) return;
    const event = membersOf(jsonIn(data));
    if (event === undefined) return;
    for (const piece of this.#read(event)) {
      if ('whole' in piece) this.#whole = piece.whole;
      else {
        this.#append(piece.index, piece.text);
        for (const { key = `whole ${this.#calls.length}`, id, name, written } of piece.calls ?? [])
          this.#call(key, id, name, written);
      }
    }
  }

  get completion(): Completion {
    if (this.#whole !== undefined) return this.#whole;
    return {
      texts: [...this.#texts.entries()].sort(([a], [b]) => a - b).map(([, text]) => text),
      toolCalls: this.#calls.map(({ id, name, written }) => ({
        ...(id !== undefined && { id }),
        ...(name !== undefined && { name }),
        arguments: parsed(written),
      })),
    };
  }

  #append(index: number, text: unknown): void {
    if (typeof text !== 'string' || this.#left <= 0) return;
    this.#texts.set(index, (this.#texts.get(index) ?? '') + this.#cut(text));
  }

  #call(key: string, id: unknown, name: unknown, written: unknown): void {
    if (this.#left <= 0) return;
    this.#left -= 1;
    let call = this.#open.get(key);
    // Some servers number all calls with 0 (vercel/ai#18440).
    const isNext = call?.end.isReached === true && typeof name === 'string' && name !== '';
    if (call === undefined || isNext) {
      call = { written: '', end: new ObjectEnd() };
      this.#calls.push(call);
      this.#open.set(key, call);
    }
    if (typeof id === 'string') call.id ??= this.#cut(id);
    if (typeof name === 'string') call.name ??= this.#cut(name);
    if (typeof written === 'string') {
      call.written += this.#cut(written);
      call.end.read(written);
    }
  }

  #cut(text: string): string {
    const kept = text.slice(0, Math.max(0, this.#left));
    // Every entry counts, so that empty texts are bounded too.
    this.#left -= kept.length + 1;
    return kept;
  }
}
