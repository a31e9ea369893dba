import type { FormatKey } from '../formats/format.ts';
import { membersOf } from '../json-members.ts';
import type { CallBody } from './call-body.ts';

/** A message that the configuration adds to every prompt. */
export interface AddedMessage {
  readonly role: string;
  readonly content: string;
}

export interface AddedMessages {
  readonly prepend: readonly AddedMessage[];
  readonly append: readonly AddedMessage[];
}

/** Adds messages before and after the client's, in the format of the call. Calls without a conversation stay unchanged. */
export function enrichPrompts(body: CallBody, format: FormatKey | undefined, added: AddedMessages): void {
  if (format !== undefined) ENRICH[format]?.(body, added);
}

const ENRICH: Partial<Readonly<Record<FormatKey, (body: CallBody, added: AddedMessages) => void>>> = {
  completions: (body, added) => surround(body, 'messages', added),
  responses(body, added) {
    const input = body.get('input');
    // The API reference, "Create a model response": a text is a message of the user.
    if (typeof input === 'string') body.set('input', [{ role: 'user', content: input }]);
    surround(body, 'input', added);
  },
  messages(body, { prepend, append }) {
    surroundSystem(body, { prepend: prepend.filter(isSystem), append: append.filter(isSystem) });
    surround(body, 'messages', {
      prepend: prepend.filter((message) => !isSystem(message)),
      append: append.filter((message) => !isSystem(message)),
    });
  },
  generateContent(body, { prepend, append }) {
    // The REST reference has the first spelling; Google's servers accept both.
    const field = body.has('system_instruction') ? 'system_instruction' : 'systemInstruction';
    const parts = (messages: readonly AddedMessage[]): object[] =>
      messages.filter(isSystem).map(({ content }) => ({ text: content }));
    const before = parts(prepend);
    const after = parts(append);
    const own = membersOf(body.get(field));
    const ownParts = Array.isArray(own?.['parts']) ? (own['parts'] as unknown[]) : [];
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
  },
};

function surround(
  body: CallBody,
  field: string,
  { prepend, append }: { readonly prepend: readonly object[]; readonly append: readonly object[] },
): void {
  const messages = body.get(field);
  if (prepend.length + append.length > 0 && Array.isArray(messages))
    body.set(field, [...prepend, ...(messages as unknown[]), ...append]);
}

/** Anthropic's messages have no system role: their API has a field for it. */
const isSystem = ({ role }: AddedMessage): boolean => role === 'system' || role === 'developer';

function surroundSystem(body: CallBody, { prepend, append }: AddedMessages): void {
  if (prepend.length + append.length === 0) return;
  const system: unknown = body.get('system') ?? [];
  const blocks: unknown[] = Array.isArray(system) ? system : [{ type: 'text', text: system }];
  const blockOf = ({ content }: AddedMessage): object => ({ type: 'text', text: content });
  body.set('system', [...prepend.map(blockOf), ...blocks, ...append.map(blockOf)]);
}
