import { randomUUID } from 'node:crypto';
import type { ChatEvent } from '../chat/chat.ts';

/**
 * Completes the events of a stream, so that each format can write them whatever a provider leaves out or repeats: one start
 * before everything else, and an end of each part.
 */
export class EventOrder {
  #isStarted = false;
  readonly #open = new Set<number>();

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
        for (const part of this.#open) yield { type: 'partEnd', part };
        break;
      case 'partEnd':
        if (!this.#open.delete(event.part)) return;
        break;
      case 'partStart':
        yield* this.#start();
        this.#open.add(event.part);
        break;
      default:
        yield* this.#start();
    }
    yield event;
  }

  *#start(): Generator<ChatEvent, void> {
    if (this.#isStarted) return;
    this.#isStarted = true;
    yield { type: 'start', id: `msg_${randomUUID().replaceAll('-', '')}`, model: '' };
  }
}
