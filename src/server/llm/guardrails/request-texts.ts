import type { LlmBody } from '../body.ts';
import { failed, type GuardedText } from './check.ts';

/** What a request says, flat, and the way to put changed texts back where they came from. */
export interface RequestTexts {
  readonly texts: readonly GuardedText[];
  /** Puts masked texts back. Ids, tool calls and images stay, as long as the number of texts is the same. */
  replace(masked: readonly GuardedText[]): void;
}

/** Where the APIs have what a model is told: chats, text completions, responses, embeddings. */
const FIELDS = ['messages', 'prompt', 'instructions', 'input'] as const;

/**
 * The texts of every field that a provider may read, whatever the path: which of them it reads is its choice. `replace`
 * throws an `AppError` (503) when the number of texts changed and several fields would have to take them.
 */
export function requestTexts(body: LlmBody): RequestTexts {
  const parts = FIELDS.flatMap((field) => partOf(body, field) ?? []);
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only;
  const texts = parts.flatMap((part) => part.texts);
  return {
    texts,
    replace(masked) {
      if (masked.length !== texts.length)
        throw failed('request', 'the mask has another number of texts than the request');
      let from = 0;
      for (const part of parts) {
        part.replace(masked.slice(from, from + part.texts.length));
        from += part.texts.length;
      }
    },
  };
}

function partOf(body: LlmBody, field: (typeof FIELDS)[number]): RequestTexts | undefined {
  const value = body.get(field);
  if (typeof value === 'string') return single(body, field, value);
  return Array.isArray(value) ? list(body, field, value as unknown[]) : undefined;
}

function single(body: LlmBody, field: string, content: string): RequestTexts {
  return {
    texts: [{ role: 'user', content }],
    replace: (masked) => body.set(field, masked.map((text) => text.content).join('\n')),
  };
}

function list(body: LlmBody, field: string, items: readonly unknown[]): RequestTexts {
  const texts = items.map(flatText);
  return {
    texts,
    replace(masked) {
      const isSameCount = masked.length === items.length;
      body.set(
        field,
        isSameCount
          ? items.map((item, index) =>
              withText(item, texts[index] as GuardedText, masked[index] as GuardedText),
            )
          : masked,
      );
    },
  };
}

function flatText(item: unknown): GuardedText {
  if (typeof item === 'string') return { role: 'user', content: item };
  const { role, content } = (item ?? {}) as { role?: unknown; content?: unknown };
  return { role: typeof role === 'string' ? role : 'user', content: flatContent(content) };
}

/** Text parts joined by a space; parts that are no text are not sent. */
export function flatContent(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return (content as unknown[])
    .map(partText)
    .filter((text) => text !== '')
    .join(' ');
}

function partText(part: unknown): string {
  const { text } = (part ?? {}) as { text?: unknown };
  return typeof text === 'string' ? text : '';
}

function withText(item: unknown, before: GuardedText, after: GuardedText): unknown {
  if (before.content === after.content) return item;
  if (typeof item === 'string') return after.content;
  const message = item as Record<string, unknown>;
  return { ...message, content: withContent(message['content'], after.content) };
}

/** The masked text stands for all text parts: it takes the place of the first, the others go. */
export function withContent(content: unknown, masked: string): unknown {
  if (!Array.isArray(content)) return masked;
  let isPlaced = false;
  const kept = (content as unknown[]).flatMap((part) => {
    if (partText(part) === '') return [part];
    if (isPlaced) return [];
    isPlaced = true;
    return [{ ...(part as object), text: masked }];
  });
  return isPlaced ? kept : [...kept, { type: 'text', text: masked }];
}
