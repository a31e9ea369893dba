import { parseUsage } from '../../usage.ts';
import type { ChatEvent, ChatUsage, StartedPart } from '../chat.ts';
import { type EventReader, type Json, Untranslatable } from '../chat-format.ts';
import { defined } from '../defined.ts';
import { answerIndex, countOf, objectOf, objectsOf, parseEvent, textOf } from '../event-data.ts';
import { readEventError } from '../provider-error.ts';
import { missingCallId, stopReason } from './read-response.ts';

/** Reads a stream of Chat Completions (API reference, "The chat completion chunk object"). */
export function eventReader(): EventReader {
  return new ChunkReader();
}

interface Call {
  readonly part: number;
  readonly id: string;
  readonly isCustom: boolean;
  hasArguments: boolean;
}

/** One answer of the response. */
class Choice {
  readonly answer: number;
  /** Kinds of all parts, for the stop reason. */
  readonly kinds: { readonly type: StartedPart['type'] }[] = [];
  /** The open part, unless it is a tool call. */
  open: { readonly type: StartedPart['type']; readonly part: number } | undefined;
  /** Open tool calls by `index`. */
  readonly calls = new Map<number, Call>();
  hasEnded = false;

  constructor(answer: number) {
    this.answer = answer;
  }
}

class ChunkReader implements EventReader {
  readonly #choices = new Map<number, Choice>();
  #hasStarted = false;
  #id = '';
  #hasEnded = false;
  #parts = 0;
  #usage: ChatUsage | undefined;

  read(data: string): readonly ChatEvent[] {
    if (data.startsWith('[DONE]')) return this.end();
    const chunk = parseEvent(data);
    const error = objectOf(chunk['error']) ?? textOf(chunk['error']);
    if (error !== undefined) return [{ type: 'error', error: readEventError(chunk) }];
    const events: ChatEvent[] = [];
    const choices = objectsOf(chunk['choices']);
    // The first chunk of Azure has neither an id nor choices, only the result of its filter.
    if (!this.#hasStarted && (choices.length > 0 || textOf(chunk['id']) !== undefined)) {
      this.#hasStarted = true;
      this.#id = textOf(chunk['id']) ?? '';
      events.push(startOf(chunk));
    }
    // Some servers report cumulative usage in every chunk.
    this.#usage = parseUsage(chunk['usage']) ?? this.#usage;
    for (const choice of choices) this.#readChoice(choice, events);
    return events;
  }

  /** A few servers send no `[DONE]`: the stream is complete if every answer is. */
  end(): readonly ChatEvent[] {
    const choices = [...this.#choices.values()];
    const isComplete = choices.length > 0 && choices.every(({ hasEnded }) => hasEnded);
    if (this.#hasEnded || !isComplete) return [];
    this.#hasEnded = true;
    return [defined({ type: 'end' as const, usage: this.#usage })];
  }

  #readChoice(value: Json, events: ChatEvent[]): void {
    const index = answerIndex(value['index'], 'choices.index');
    let choice = this.#choices.get(index);
    if (choice === undefined) {
      choice = new Choice(index);
      this.#choices.set(index, choice);
    }
    const delta = objectOf(value['delta']) ?? {};
    for (const member of ['audio', 'function_call', 'images'])
      if (!isEmpty(delta[member])) throw new Untranslatable(`choices[${index}].delta.${member}`);
    // `reasoning_content` is that of DeepSeek and vLLM, `reasoning` that of OpenRouter, Groq, Ollama and newer vLLM.
    this.#text(choice, 'reasoning', delta['reasoning_content'] ?? delta['reasoning'], events);
    this.#content(choice, delta['content'], events);
    this.#text(choice, 'refusal', delta['refusal'], events);
    for (const [position, call] of objectsOf(delta['tool_calls']).entries())
      this.#call(choice, call, countOf(call['index']) ?? position, events);
    const reason = textOf(value['finish_reason']);
    if (reason !== undefined && !choice.hasEnded) this.#finish(choice, reason, value['stop_reason'], events);
  }

  /** A text, or a list of texts and thoughts (Mistral). */
  #content(choice: Choice, value: unknown, events: ChatEvent[]): void {
    this.#text(choice, 'text', value, events);
    for (const { type, text, thinking } of objectsOf(value)) {
      if (type !== 'thinking') this.#text(choice, 'text', text, events);
      else
        for (const thought of objectsOf(thinking)) this.#text(choice, 'reasoning', thought['text'], events);
    }
  }

  #text(choice: Choice, type: 'reasoning' | 'text' | 'refusal', value: unknown, events: ChatEvent[]): void {
    const text = textOf(value);
    if (text === undefined) return;
    if (choice.open?.type !== type) {
      closeText(choice, events);
      const content = type === 'reasoning' ? { type, origin: 'completions' as const } : { type };
      choice.open = { type, part: this.#start(choice, content, events) };
    }
    events.push({ type: 'delta', part: choice.open.part, text });
  }

  #call(choice: Choice, value: Json, index: number, events: ChatEvent[]): void {
    const custom = objectOf(value['custom']);
    const tool = custom ?? objectOf(value['function']) ?? {};
    const id = textOf(value['id']);
    let call = choice.calls.get(index);
    // Some servers number all calls with 0, but each has its own id.
    if (call !== undefined && id !== undefined && id !== call.id) {
      closeCall(call, events);
      call = undefined;
    }
    if (call === undefined) {
      closeText(choice, events);
      const start = {
        type: 'toolCall' as const,
        id: id ?? missingCallId(this.#id, choice.kinds.filter(({ type }) => type === 'toolCall').length),
        name: textOf(tool['name']) ?? '',
        ...(custom === undefined ? {} : { isCustom: true }),
      };
      const part = this.#start(choice, start, events);
      call = { part, id: start.id, isCustom: custom !== undefined, hasArguments: false };
      choice.calls.set(index, call);
    }
    const args = custom === undefined ? tool['arguments'] : tool['input'];
    // Some servers send the object itself instead of its JSON text.
    const text = typeof args === 'object' && args !== null ? JSON.stringify(args) : textOf(args);
    if (text === undefined) return;
    call.hasArguments = true;
    events.push({ type: 'delta', part: call.part, text });
  }

  #start(choice: Choice, content: StartedPart, events: ChatEvent[]): number {
    const part = this.#parts;
    this.#parts += 1;
    choice.kinds.push(content);
    events.push({ type: 'partStart', part, answer: choice.answer, content });
    return part;
  }

  #finish(choice: Choice, reason: string, sequence: unknown, events: ChatEvent[]): void {
    closeText(choice, events);
    for (const call of choice.calls.values()) closeCall(call, events);
    choice.calls.clear();
    choice.hasEnded = true;
    const stop = stopReason(reason, choice.kinds);
    const { answer } = choice;
    // vLLM tells the stop sequence that ended the answer; a number is a token.
    events.push(
      typeof sequence === 'string' && stop === 'stop'
        ? { type: 'answerEnd', answer, stop: 'stopSequence', stopSequence: sequence }
        : { type: 'answerEnd', answer, stop },
    );
  }
}

function startOf(chunk: Json): ChatEvent {
  return defined({
    type: 'start' as const,
    id: textOf(chunk['id']) ?? '',
    model: textOf(chunk['model']) ?? '',
    created: countOf(chunk['created']),
  });
}

function closeText(choice: Choice, events: ChatEvent[]): void {
  if (choice.open !== undefined) events.push({ type: 'partEnd', part: choice.open.part });
  choice.open = undefined;
}

function closeCall({ part, isCustom, hasArguments }: Call, events: ChatEvent[]): void {
  // Some servers send no arguments at all for a tool without parameters.
  if (!isCustom && !hasArguments) events.push({ type: 'delta', part, text: '{}' });
  events.push({ type: 'partEnd', part });
}

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || (Array.isArray(value) && value.length === 0);
