import type { ChatEvent, ChatRequest } from '../chat/chat.ts';
import { restoreStart } from '../chat/client-tools.ts';
import { customInput } from '../chat/custom-tools.ts';
import { HeldText } from '../chat/held-text.ts';

/**
 * Turns streamed calls of functions that stand for other tools of the client back, like `restoreCalls` for a whole
 * response. Arguments for a custom tool are held until they are complete, because they are JSON text of the input.
 */
export class CustomCallRestorer {
  readonly #request: ChatRequest;
  readonly #arguments = new Map<number, string>();
  readonly #held = new HeldText();

  constructor(request: ChatRequest) {
    this.#request = request;
  }

  read(event: ChatEvent): readonly ChatEvent[] {
    switch (event.type) {
      case 'partStart': {
        const { content } = event;
        if (content.type !== 'toolCall') return [event];
        const restored = restoreStart(content, this.#request);
        if (content.isCustom !== true && restored.isCustom === true) this.#arguments.set(event.part, '');
        return [{ ...event, content: restored }];
      }
      case 'delta': {
        const held = this.#arguments.get(event.part);
        if (held === undefined) return [event];
        this.#arguments.set(event.part, held + this.#held.add(event.text));
        return [];
      }
      case 'partEnd': {
        const held = this.#arguments.get(event.part);
        if (held === undefined) return [event];
        this.#arguments.delete(event.part);
        this.#held.remove(held);
        const text = customInput(held);
        return [...(text === '' ? [] : [{ type: 'delta' as const, part: event.part, text }]), event];
      }
      default:
        return [event];
    }
  }
}
