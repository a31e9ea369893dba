import { elementsOf } from '../../../../core/foreign.ts';
import { membersOf } from '../../json-members.ts';
import { isSystem, surround } from '../added-messages.ts';
import type { AddedMessage, AddedMessages, Fields } from '../format.ts';

/** Adds messages to the contents, and system prompts to the instruction. */
export function addMessages(body: Fields, { prepend, append }: AddedMessages): void {
  // The REST reference has the first spelling; Google's servers accept both.
  const field = body.has('system_instruction') ? 'system_instruction' : 'systemInstruction';
  const parts = (messages: readonly AddedMessage[]): object[] =>
    messages.filter(isSystem).map(({ content }) => ({ text: content }));
  const before = parts(prepend);
  const after = parts(append);
  const own = membersOf(body.get(field));
  const ownParts = elementsOf(own?.['parts']);
  if (before.length + after.length > 0)
    body.set(field, { ...own, parts: [...before, ...ownParts, ...after] });
  const contents = (messages: readonly AddedMessage[]): object[] =>
    messages
      .filter((message) => !isSystem(message))
      .map(({ role, content }) => ({
        role: role === 'assistant' ? 'model' : 'user',
        parts: [{ text: content }],
      }));
  surround(body, 'contents', { prepend: contents(prepend), append: contents(append) });
}
