import { LIMITS } from '../../../../core/limits.ts';
import type { ChatEvent, ChatUsage, StartedPart } from '../../chat/chat.ts';
import { type EventReader, type Json, Untranslatable } from '../../chat/chat-format.ts';
import { defined } from '../../chat/defined.ts';
import {
  answerIndex,
  countOf,
  isEmpty,
  objectOf,
  objectsOf,
  parseEvent,
  textOf,
} from '../../chat/event-data.ts';
import { HeldText } from '../../chat/held-text.ts';
import { errorInChoices, readEventError } from '../../chat/provider-error.ts';
import { largerUsage, parseUsage } from '../../usage.ts';
import { choiceUsage } from './choices.ts';
import { missingCallId, stopReason, UNTRANSLATABLE } from './read-response.ts';
import { callOf, StreamedCall } from './streamed-call.ts';

/** Reads a stream of Chat Completions (API reference, "The chat completion chunk object"). */
export function eventReader(): EventReader {
  return new ChunkReader();
}

/** One answer of the response. */
class Choice {
  readonly answer: number;
  /** Kinds of all parts, for the stop reason. */
  readonly kinds: { readonly type: StartedPart['type'] }[] = [];
  /** The open part, unless it is a tool call. */
  open: { readonly type: StartedPart['type']; readonly part: number } | undefined;
  /** Tool calls of the answer, in the order in which they began. */
  readonly calls: StreamedCall[] = [];
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
  usage: ChatUsage | undefined;
  readonly #held = new HeldText();

  read(data: string): readonly ChatEvent[] {
    if (data.startsWith('[DONE]')) return [...this.#finishAll(), ...this.end()];
    const chunk = parseEvent(data);
    if (!isEmpty(chunk['error'])) return [{ type: 'error', error: readEventError(chunk) }];
    const events: ChatEvent[] = [];
    const choices = objectsOf(chunk['choices']);
    // The first chunk of Azure has neither an id nor choices, only the result of its filter.
    if (!this.#hasStarted && (choices.length > 0 || textOf(chunk['id']) !== undefined)) {
      this.#hasStarted = true;
      this.#id = textOf(chunk['id']) ?? '';
      events.push(startOf(chunk));
    }
    // Some servers report cumulative usage in every chunk.
    this.usage = largerUsage(this.usage, parseUsage(choiceUsage(chunk) ?? chunk['usage']));
    const failed = errorInChoices(chunk);
    if (failed !== undefined) return [...events, { type: 'error', error: readEventError({ error: failed }) }];
    for (const choice of choices) this.#readChoice(choice, events);
    return events;
  }

  /**
   * Some servers end a stream with `[DONE]` alone, without a `finish_reason` or with an empty one (sglang#3912). An answer with half
   * of a call was cut off.
   */
  #finishAll(): ChatEvent[] {
    const events: ChatEvent[] = [];
    for (const choice of this.#choices.values())
      if (!choice.hasEnded && choice.calls.every(({ hasAllArguments }) => hasAllArguments))
        this.#finish(choice, 'stop', undefined, events);
    return events;
  }

  /** A few servers send no `[DONE]`: the stream is complete if every answer is. */
  end(): readonly ChatEvent[] {
    const choices = [...this.#choices.values()];
    const isComplete = choices.length > 0 && choices.every(({ hasEnded }) => hasEnded);
    if (this.#hasEnded || !isComplete) return [];
    this.#hasEnded = true;
    return [defined({ type: 'end' as const, usage: this.usage })];
  }

  #readChoice(value: Json, events: ChatEvent[]): void {
    const index = answerIndex(value['index'], 'choices.index');
    let choice = this.#choices.get(index);
    if (choice === undefined) {
      choice = new Choice(index);
      this.#choices.set(index, choice);
    }
    const delta = objectOf(value['delta']) ?? {};
    for (const member of UNTRANSLATABLE)
      if (!isEmpty(delta[member])) throw new Untranslatable(`choices[${index}].delta.${member}`);
    // `reasoning_content` is that of DeepSeek and vLLM, `reasoning` that of OpenRouter, Groq, Ollama and newer vLLM.
    this.#text(choice, 'reasoning', textOf(delta['reasoning_content']) ?? delta['reasoning'], events);
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
    let call = callOf(choice.calls, index, value);
    if (call === undefined) {
      // Calls that have no name yet are not parts.
      if (choice.calls.length >= LIMITS.llmParts)
        throw new Untranslatable(
          `choices[${choice.answer}].delta.tool_calls`,
          `there are more than ${LIMITS.llmParts}`,
        );
      call = new StreamedCall(index);
      choice.calls.push(call);
    }
    this.#held.add(call.add(value));
    this.#openCalls(choice, events);
  }

  /** Writes what is known of the calls. One is written after those before it have begun, so that their order stays. */
  #openCalls(choice: Choice, events: ChatEvent[], isEnd = false): void {
    for (const [position, call] of choice.calls.entries()) {
      if (call.part === undefined) {
        // An id alone is of another delta of the call before it.
        if (isEnd && call.isOnlyMetadata && (call.id === undefined || position > 0)) continue;
        if (!isEnd && !call.isReady) return;
        closeText(choice, events);
        const missing = missingCallId(this.#id, position);
        call.part = this.#start(choice, call.start(missing, `choices[${choice.answer}]`), events);
      }
      const text = call.takeArguments(isEnd);
      if (!call.isPlaceholder) this.#held.remove(text);
      if (text !== '') events.push({ type: 'delta', part: call.part, text });
      if (isEnd) events.push({ type: 'partEnd', part: call.part });
    }
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
    this.#openCalls(choice, events, true);
    choice.calls.length = 0;
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
