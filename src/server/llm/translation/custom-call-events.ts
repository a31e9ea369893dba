import type { ChatEvent, ChatRequest } from './chat.ts';
import { customInput, isCustomTool } from './custom-tools.ts';
import { HeldText } from './held-text.ts';

/**
 * Turns streamed calls of functions that stand for custom tools of the client back, like `restoreCustomCalls` for a
 * whole response. Their arguments are held until they are complete, because they are JSON text of the input.
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
        if (content.type !== 'toolCall' || content.isCustom === true) return [event];
        if (!isCustomTool(this.#request, content.name)) return [event];
        this.#arguments.set(event.part, '');
        return [{ ...event, content: { ...content, isCustom: true } }];
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
