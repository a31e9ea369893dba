import type { ChatEvent } from '../chat/chat.ts';
import { newId } from '../chat/new-id.ts';
import { isPlaceholder } from '../chat/tool-arguments.ts';

/**
 * Completes the events of a stream, so that each format can write them whatever a provider leaves out or repeats: one start
 * before everything else, an end of each part, and arguments of each call.
 */
export class EventOrder {
  #isStarted = false;
  /** Open parts, and whether each still needs arguments: a function without parameters is called with an empty object. */
  readonly #open = new Map<number, boolean>();

  /** The events that take the place of one. */
  *completed(event: ChatEvent): Generator<ChatEvent, void> {
    switch (event.type) {
      case 'error':
      case 'ping':
        break;
      case 'start':
        if (this.#isStarted) return;
        this.#isStarted = true;
        break;
      case 'end':
        yield* this.#start();
        for (const part of this.#open.keys()) yield* this.#partEnd(part);
        break;
      case 'partEnd':
        yield* this.#partEnd(event.part);
        return;
      case 'partStart': {
        yield* this.#start();
        const { content } = event;
        this.#open.set(event.part, content.type === 'toolCall' && content.isCustom !== true);
        break;
      }
      case 'delta':
        yield* this.#start();
        // The end of the part adds it if nothing follows.
        if (this.#open.get(event.part) === true && isPlaceholder(event.text)) return;
        if (event.text.trim() !== '') this.#filled(event.part);
        break;
      default:
        yield* this.#start();
    }
    yield event;
  }

  #filled(part: number): void {
    if (this.#open.get(part) === true) this.#open.set(part, false);
  }

  /** Nothing for a part that is not open. */
  *#partEnd(part: number): Generator<ChatEvent, void> {
    // Bedrock, Claude and vLLM stream no arguments of such a call, or only '' (agentgateway/agentgateway#2965).
    if (this.#open.get(part) === true) yield { type: 'delta', part, text: '{}' };
    if (this.#open.delete(part)) yield { type: 'partEnd', part };
  }

  *#start(): Generator<ChatEvent, void> {
    if (this.#isStarted) return;
    this.#isStarted = true;
    yield { type: 'start', id: newId(), model: '' };
  }
}
