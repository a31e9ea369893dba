import type { Answer, AnswerPart, ChatEvent, ChatResponse, ReasoningPart, StartedPart } from './chat.ts';
import { defined } from './defined.ts';
import { HeldText } from './held-text.ts';

// Converts between a whole response and its events: a provider may answer a request for a stream without one, or the
// reverse, and some events repeat the whole response.

/** The events that a provider would have streamed for a response. */
export function* eventsOf(response: ChatResponse): Generator<ChatEvent> {
  const { id, model, created, usage } = response;
  yield defined({ type: 'start' as const, id, model, created, usage });
  let number = 0;
  for (const [answer, { parts, stop, stopSequence }] of response.answers.entries()) {
    for (const part of parts) {
      yield* partEvents(part, number, answer);
      number += 1;
    }
    yield defined({ type: 'answerEnd' as const, answer, stop, stopSequence });
  }
  yield defined({ type: 'end' as const, usage });
}

function* partEvents(content: AnswerPart, part: number, answer: number): Generator<ChatEvent> {
  const [started, text] = startOf(content);
  yield { type: 'partStart', part, answer, content: started };
  if (text !== '') yield { type: 'delta', part, text };
  if (content.type === 'reasoning' && content.signature !== undefined)
    yield { type: 'signature', part, signature: content.signature };
  yield { type: 'partEnd', part };
}

function startOf(part: AnswerPart): [start: StartedPart, text: string] {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return [{ type: part.type }, part.text];
    case 'reasoning': {
      const { type, isSummary, encrypted, id, origin } = part;
      return [defined({ type, isSummary, encrypted, id, origin }), part.text];
    }
    case 'toolCall': {
      const { type, id, name, isCustom } = part;
      return [defined({ type, id, name, isCustom }), part.arguments];
    }
  }
}

interface OpenPart {
  readonly start: StartedPart;
  text: string;
  signature?: string;
  encrypted?: string;
}

interface OpenAnswer {
  readonly parts: OpenPart[];
  end?: Pick<Answer, 'stop' | 'stopSequence'>;
}

/**
 * Collects the events of a stream. Throws `Untranslatable` if texts and arguments exceed `LIMITS.responseBodyBytes`
 * characters.
 */
export class ResponseCollector {
  readonly #parts = new Map<number, OpenPart>();
  readonly #answers = new Map<number, OpenAnswer>();
  #start: Pick<ChatResponse, 'id' | 'model' | 'created' | 'usage'> = { id: '', model: '' };
  readonly #held = new HeldText();

  add(event: ChatEvent): void {
    switch (event.type) {
      case 'start': {
        const { id, model, created, usage } = event;
        this.#start = defined({ id, model, created, usage });
        return;
      }
      case 'partStart': {
        const part = { start: event.content, text: '' };
        this.#parts.set(event.part, part);
        this.#answer(event.answer).parts.push(part);
        return;
      }
      case 'delta':
        this.#part(event.part).text += this.#held.add(event.text);
        return;
      case 'signature':
        this.#part(event.part).signature = this.#held.add(event.signature);
        return;
      case 'encrypted':
        this.#part(event.part).encrypted = this.#held.add(event.encrypted);
        return;
      case 'answerEnd':
        this.#answer(event.answer).end = defined({ stop: event.stop, stopSequence: event.stopSequence });
        return;
      case 'end':
        if (event.usage !== undefined) this.#start = { ...this.#start, usage: event.usage };
        return;
      default:
    }
  }

  /** The response as far as it was received. An answer that has not ended counts as stopped. */
  response(): ChatResponse {
    const last = Math.max(-1, ...this.#answers.keys());
    const answers = Array.from({ length: last + 1 }, (_, index): Answer => {
      const { parts = [], end = { stop: 'stop' } } = this.#answers.get(index) ?? {};
      return { parts: parts.map(partOf), ...end };
    });
    return { ...this.#start, answers };
  }

  /** A part as far as it was received. Throws if it was not started. */
  partOf(number: number): AnswerPart {
    return partOf(this.#part(number));
  }

  #part(number: number): OpenPart {
    const part = this.#parts.get(number);
    if (part === undefined) throw new Error(`part ${number} was not started`);
    return part;
  }

  /** Answers of a request for several may start in any order. Readers bound the index by `LIMITS.llmAnswers`. */
  #answer(index: number): OpenAnswer {
    let answer = this.#answers.get(index);
    if (answer === undefined) {
      answer = { parts: [] };
      this.#answers.set(index, answer);
    }
    return answer;
  }
}

function partOf({ start, text, signature, encrypted }: OpenPart): AnswerPart {
  switch (start.type) {
    case 'text':
    case 'refusal':
      return { type: start.type, text };
    case 'toolCall':
      return { ...start, arguments: text };
    case 'reasoning':
      return reasoningOf({ start, text, signature, encrypted });
  }
}

export type StartedReasoning = Extract<StartedPart, { type: 'reasoning' }>;

/** A reasoning part whose end was received. */
export function reasoningOf(part: {
  readonly start: StartedReasoning;
  readonly text?: string;
  readonly signature?: string | undefined;
  readonly encrypted?: string | undefined;
}): ReasoningPart {
  const { start, text = '', signature, encrypted = start.encrypted } = part;
  return defined({ ...start, text, signature, encrypted });
}
