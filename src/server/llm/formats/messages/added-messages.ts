import { isSystem, surround } from '../added-messages.ts';
import type { AddedMessage, AddedMessages, Fields } from '../format.ts';

/** Adds messages to a conversation, and system prompts to `system`: messages have no such role. */
export function addMessages(body: Fields, { prepend, append }: AddedMessages): void {
  surroundSystem(body, { prepend: prepend.filter(isSystem), append: append.filter(isSystem) });
  surround(body, 'messages', {
    prepend: prepend.filter((message) => !isSystem(message)),
    append: append.filter((message) => !isSystem(message)),
  });
}

function surroundSystem(body: Fields, { prepend, append }: AddedMessages): void {
  if (prepend.length + append.length === 0) return;
  const system: unknown = body.get('system') ?? [];
  const blocks: unknown[] = Array.isArray(system) ? system : [{ type: 'text', text: system }];
  const blockOf = ({ content }: AddedMessage): object => ({ type: 'text', text: content });
  body.set('system', [...prepend.map(blockOf), ...blocks, ...append.map(blockOf)]);
}
