import { TooDeep } from '../texts.ts';
import { failed } from './check.ts';
import { ItemTexts } from './item-texts.ts';

/** What a whole response says, the content of each choice and its other texts, and the response with others instead. */
export interface ResponseTexts {
  readonly contents: readonly string[];
  replaced(masked: readonly string[]): unknown;
}

type Json = Record<string, unknown>;

/**
 * The texts of a chat or text completion (`choices`), or of a response (`output`). Embeddings say nothing. Throws an
 * `AppError` (503) for what is nested too deeply to be looked at.
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
      // What some providers give besides, the text of all items in one.
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
    if (error instanceof TooDeep) throw failed('response', 'a text is nested too deeply');
    throw error;
  }
}
