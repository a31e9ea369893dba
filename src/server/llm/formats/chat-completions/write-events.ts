import type { ChatEvent, ChatRequest, StartedPart } from '../../chat/chat.ts';
import type { EventWriter, Json } from '../../chat/chat-format.ts';
import { PING, serverEvent } from '../../chat/event-data.ts';
import { reasoningOf } from '../../chat/event-response.ts';
import { HeldText } from '../../chat/held-text.ts';
import { JoinedReasoning } from '../../chat/joined-reasoning.ts';
import { SEPARATOR } from '../../chat/turns.ts';
import { writeOpenAiError as writeError } from '../openai-error.ts';
import { finishReason, writeUsage } from './write-response.ts';

/** Writes a stream of Chat Completions (API reference, "The chat completion chunk object"). */
export function eventWriter(request: ChatRequest): EventWriter {
  return new ChunkWriter(request.streamUsage);
}

interface Answer {
  /** Kinds of all parts, for the finish reason. */
  readonly parts: StartedPart[];
  readonly reasoning: JoinedReasoning;
  calls: number;
}

interface OpenPart {
  readonly answer: number;
  readonly start: StartedPart;
  /** Of a tool call: its position among those of the answer. */
  readonly index: number;
  /** What separates its text from that of an earlier part of its kind. */
  separator: string;
  /** Of reasoning: its place in that of the answer. */
  readonly piece: ReturnType<JoinedReasoning['begin']> | undefined;
  signature?: string;
  encrypted?: string;
}

class ChunkWriter implements EventWriter {
  readonly #hasUsage: boolean;
  readonly #answers = new Map<number, Answer>();
  readonly #parts = new Map<number, OpenPart>();
  readonly #held = new HeldText();
  #head: Json = {};

  /** `hasUsage`: whether the client asked for the token counts. */
  constructor(hasUsage: boolean) {
    this.#hasUsage = hasUsage;
  }

  write(event: ChatEvent): string {
    switch (event.type) {
      case 'start': {
        const { id, model, created = Math.floor(Date.now() / 1000) } = event;
        this.#head = { id, object: 'chat.completion.chunk', created, model };
        return '';
      }
      case 'partStart':
        return this.#partStart(event);
      case 'delta':
        return this.#delta(this.#part(event.part), event.text);
      case 'signature':
        this.#part(event.part).signature = this.#held.add(event.signature);
        return '';
      case 'encrypted':
        this.#part(event.part).encrypted = this.#held.add(event.encrypted);
        return '';
      case 'partEnd':
        return this.#partEnd(event.part);
      case 'answerEnd': {
        const opening = this.#open(event.answer);
        const reason = finishReason(event.stop, this.#answer(event.answer).parts);
        // Clients join the texts of all chunks, so it is in one.
        const signature = this.#answer(event.answer).reasoning.state();
        const signed =
          signature === undefined ? '' : this.#choice(event.answer, { reasoning_signature: signature });
        return opening + signed + this.#choice(event.answer, {}, reason);
      }
      case 'end':
        return `${this.#usage(event.usage)}data: [DONE]\n\n`;
      case 'error':
        return serverEvent(writeError(event.error));
      case 'ping':
        return PING;
    }
  }

  #answer(index: number): Answer {
    let answer = this.#answers.get(index);
    if (answer === undefined) {
      answer = { parts: [], reasoning: new JoinedReasoning(), calls: 0 };
      this.#answers.set(index, answer);
    }
    return answer;
  }

  /** The first chunk of an answer, which names the role. */
  #open(answer: number): string {
    return this.#answers.has(answer) ? '' : this.#choice(answer, { role: 'assistant', content: '' });
  }

  #partStart({ part, answer, content }: Extract<ChatEvent, { type: 'partStart' }>): string {
    const opening = this.#open(answer);
    const state = this.#answer(answer);
    const isSecond = state.parts.some(({ type }) => type === content.type);
    state.parts.push(content);
    const isCall = content.type === 'toolCall';
    const piece = content.type === 'reasoning' ? state.reasoning.begin() : undefined;
    const separator = isSecond ? SEPARATOR : '';
    const open = { answer, start: content, index: state.calls, separator, piece };
    this.#parts.set(part, open);
    if (!isCall) return opening;
    state.calls += 1;
    const { id, name, isCustom } = content;
    const call =
      isCustom === true
        ? { index: open.index, id, type: 'custom', custom: { name, input: '' } }
        : { index: open.index, id, type: 'function', function: { name, arguments: '' } };
    return opening + this.#choice(answer, { tool_calls: [call] });
  }

  #delta(part: OpenPart, text: string): string {
    const { start, answer, index, piece } = part;
    if (piece !== undefined)
      return this.#choice(answer, { reasoning_content: this.#answer(answer).reasoning.add(piece, text) });
    if (start.type === 'toolCall') {
      const call = start.isCustom === true ? { custom: { input: text } } : { function: { arguments: text } };
      return this.#choice(answer, { tool_calls: [{ index, ...call }] });
    }
    const whole = part.separator + text;
    part.separator = '';
    return this.#choice(answer, start.type === 'refusal' ? { refusal: whole } : { content: whole });
  }

  #partEnd(number: number): string {
    const { start, answer, piece, signature, encrypted } = this.#part(number);
    this.#parts.delete(number);
    if (start.type === 'reasoning' && piece !== undefined)
      this.#answer(answer).reasoning.end(piece, reasoningOf({ start, signature, encrypted }));
    return '';
  }

  #part(number: number): OpenPart {
    const part = this.#parts.get(number);
    if (part === undefined) throw new Error(`part ${number} is not open`);
    return part;
  }

  #choice(index: number, delta: Json, reason: string | null = null): string {
    const choices = [{ index, delta, logprobs: null, finish_reason: reason }];
    return serverEvent({ ...this.#head, choices, ...(this.#hasUsage ? { usage: null } : {}) });
  }

  /** API reference, `stream_options.include_usage`: one more chunk, without choices, before `[DONE]`. */
  #usage(usage: Extract<ChatEvent, { type: 'end' }>['usage']): string {
    if (!this.#hasUsage || usage === undefined) return '';
    return serverEvent({ ...this.#head, choices: [], usage: writeUsage(usage) });
  }
}
