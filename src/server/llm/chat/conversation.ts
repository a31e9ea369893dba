import { shownValue } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import { membersOf, parseOrNothing } from '../json-members.ts';

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

/** The output of a non-streaming response: chat and text completions, `/v1/responses`, `/v1/messages`. */
export function completionOf(answer: unknown): Completion {
  const value = membersOf(answer) ?? {};
  const choices = value['choices'];
  if (Array.isArray(choices)) {
    const messages = choices.map((choice) => membersOf(membersOf(choice)?.['message'] ?? choice));
    return {
      texts: cut(messages.map(textOf)),
      toolCalls: messages.flatMap((message) => callsIn(message?.['tool_calls'])),
    };
  }
  const { candidates } = value;
  if (Array.isArray(candidates)) return ofCandidates(candidates);
  const items = value['output'] ?? value['content'];
  if (!Array.isArray(items)) return { texts: [], toolCalls: [] };
  const texts = items.map(textOf).filter((text) => text !== '');
  return { texts: texts.length === 0 ? [] : cut([texts.join('')]), toolCalls: callsIn(items) };
}

/** The output of `generateContent`, without thoughts. */
function ofCandidates(candidates: readonly unknown[]): Completion {
  const parts = candidates.map((each) => {
    const list = membersOf(membersOf(each)?.['content'])?.['parts'];
    return Array.isArray(list) ? (list as unknown[]).map((part) => membersOf(part) ?? {}) : [];
  });
  return {
    texts: cut(parts.map((list) => textOf(list.filter(({ thought }) => thought !== true)))),
    toolCalls: functionCallsIn(parts.flat()),
  };
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
  return typeof given === 'string' ? (parseOrNothing(given) ?? given) : given;
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

/** Cuts texts so that together they have at most `LIMITS.loggedPayload` characters. */
function cut(texts: readonly string[]): string[] {
  let left: number = LIMITS.loggedPayload;
  return texts.map((text) => {
    const kept = text.length > left ? text.slice(0, left) : text;
    left -= kept.length;
    return kept;
  });
}

interface StreamedCall {
  id?: string;
  name?: string;
  written: string;
}

/** Assembles the output of a stream from its events, up to `LIMITS.loggedPayload` characters. */
export class StreamedCompletion {
  readonly #texts = new Map<number, string>();
  readonly #calls = new Map<string, StreamedCall>();
  #left: number = LIMITS.loggedPayload;
  /** The complete output, if an event contains it. */
  #whole: Completion | undefined;

  /** Adds the data of one event. */
  add(data: string): void {
    if (this.#left <= 0) return;
    const event = membersOf(parseOrNothing(data));
    if (event === undefined) return;
    const { type, choices, delta, candidates } = event;
    if (Array.isArray(candidates)) this.#candidates(candidates);
    if (Array.isArray(choices)) for (const choice of choices) this.#choice(membersOf(choice) ?? {});
    else if (type === 'response.completed') this.#whole = completionOf(event['response']);
    else if (type === 'response.output_text.delta') this.#append(0, delta);
    else if (type === 'content_block_start') this.#block(event, membersOf(event['content_block']) ?? {});
    else if (type === 'content_block_delta') this.#block(event, membersOf(delta) ?? {});
  }

  get completion(): Completion {
    if (this.#whole !== undefined) return this.#whole;
    return {
      texts: [...this.#texts.entries()].sort(([a], [b]) => a - b).map(([, text]) => text),
      toolCalls: [...this.#calls.values()].map(({ written, ...call }) => ({
        ...call,
        arguments: parsed(written),
      })),
    };
  }

  #candidates(candidates: readonly unknown[]): void {
    const { texts, toolCalls } = ofCandidates(candidates);
    for (const [at, text] of texts.entries()) {
      const index = membersOf(candidates[at])?.['index'];
      this.#append(typeof index === 'number' ? index : at, text);
    }
    // Calls are not split over events.
    for (const { id, name, arguments: value } of toolCalls)
      this.#call(`function ${this.#calls.size}`, id, name, JSON.stringify(value));
  }

  #choice(choice: Readonly<Record<string, unknown>>): void {
    const index = typeof choice['index'] === 'number' ? choice['index'] : 0;
    const delta = membersOf(choice['delta']) ?? {};
    this.#append(index, delta['content'] ?? choice['text']);
    const calls = delta['tool_calls'];
    if (!Array.isArray(calls)) return;
    for (const call of calls as unknown[]) {
      const { index: at, id, function: named } = membersOf(call) ?? {};
      const { name, arguments: written } = membersOf(named) ?? {};
      this.#call(`${index} ${String(at)}`, id, name, written);
    }
  }

  /** Content blocks of `/v1/messages`: texts, and tool calls whose input is split over events. */
  #block(event: Readonly<Record<string, unknown>>, block: Readonly<Record<string, unknown>>): void {
    this.#append(0, block['text']);
    if (block['type'] === 'tool_use' || block['type'] === 'input_json_delta')
      this.#call(shownValue(event['index']), block['id'], block['name'], block['partial_json']);
  }

  #append(index: number, text: unknown): void {
    if (typeof text !== 'string' || this.#left <= 0) return;
    this.#texts.set(index, (this.#texts.get(index) ?? '') + this.#cut(text));
  }

  #call(key: string, id: unknown, name: unknown, written: unknown): void {
    if (this.#left <= 0) return;
    this.#left -= 1;
    const call: StreamedCall = this.#calls.get(key) ?? { written: '' };
    if (typeof id === 'string') call.id ??= this.#cut(id);
    if (typeof name === 'string') call.name ??= this.#cut(name);
    if (typeof written === 'string') call.written += this.#cut(written);
    this.#calls.set(key, call);
  }

  #cut(text: string): string {
    const kept = text.slice(0, Math.max(0, this.#left));
    // Every entry counts, so that empty texts are bounded too.
    this.#left -= kept.length + 1;
    return kept;
  }
}
