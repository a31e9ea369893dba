import { NestingError } from '../texts.ts';
import { failed } from './check.ts';
import { ItemTexts } from './item-texts.ts';

/** The texts of a non-streaming response, per choice content first, and a function that returns it with other texts. */
export interface ResponseTexts {
  readonly contents: readonly string[];
  replaced(masked: readonly string[]): unknown;
}

type Json = Record<string, unknown>;

/**
 * The texts of a chat or text completion (`choices`) or of a response (`output`). Embeddings have none. Throws an
 * `AppError` (503) if the response is nested too deeply to check.
 */
export function responseTexts(response: unknown): ResponseTexts {
  const value = (typeof response === 'object' && response !== null ? response : {}) as Json;
  for (const member of ['choices', 'output'] as const) {
    const items = value[member];
    if (Array.isArray(items)) return itemsOf(value, member, items as unknown[]);
  }
  return { contents: [], replaced: () => response };
}

function itemsOf(value: Json, member: 'choices' | 'output', items: readonly unknown[]): ResponseTexts {
  const found = items.map((item) => textsOf(item, member));
  return {
    contents: found.flatMap(({ texts }) => texts),
    replaced(masked) {
      let from = 0;
      const replaced = found.map((item) => {
        const own = masked.slice(from, from + item.texts.length);
        from += item.texts.length;
        return item.replaced(own);
      });
      // Some providers repeat the text of all items here.
      const { output_text: _text, ...rest } = value;
      return { ...rest, [member]: replaced };
    },
  };
}

function textsOf(item: unknown, member: 'choices' | 'output'): ItemTexts {
  try {
    if (member === 'output') return new ItemTexts(item, ['content']);
    const isText = typeof (item as { text?: unknown } | null)?.text === 'string';
    return new ItemTexts(item, isText ? ['text'] : ['message', 'content']);
  } catch (error) {
    if (error instanceof NestingError) throw failed('response', 'a text is nested too deeply');
    throw error;
  }
}
