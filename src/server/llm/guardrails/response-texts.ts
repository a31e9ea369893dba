import type { FormatKey } from '../formats/format.ts';
import { type Members, membersOf } from '../json-members.ts';
import { NestingError, type TextPath } from '../texts.ts';
import { failed, type GuardedText, jsonOf } from './guarded-text.ts';
import { type FoundText, ItemTexts } from './item-texts.ts';

/** The texts of a non-streaming response, per choice content first, and a function that returns it with other texts. */
export interface ResponseTexts {
  readonly texts: readonly GuardedText[];
  replaced(masked: readonly string[]): unknown;
}

/** Members with model output: chat and text completions, `/v1/responses`, `/v1/messages`, `generateContent`. */
const OUTPUT_FIELDS = ['choices', 'output', 'content', 'candidates'] as const;
type OutputField = (typeof OUTPUT_FIELDS)[number];

/** Formats whose responses have no text of a model: numbers only, or documents of the client. */
const WITHOUT_TEXT: ReadonlySet<FormatKey | undefined> = new Set([
  'embeddings',
  'embedContent',
  'batchEmbedContents',
  'anthropicTokenCount',
  'geminiCountTokens',
  'moderations',
  'rerank',
]);

/**
 * The texts of a chat or text completion, of a response, or of a message; otherwise every text: of a transcript, the
 * revised prompts of images, and of a response of unknown format. Throws an `AppError` (503) if the response is nested too
 * deeply to check.
 */
export function responseTexts(response: unknown, format: FormatKey | undefined): ResponseTexts {
  const value = membersOf(response) ?? {};
  for (const field of OUTPUT_FIELDS) {
    const items = value[field];
    if (Array.isArray(items)) return itemsOf(value, field, items as unknown[]);
  }
  return WITHOUT_TEXT.has(format) ? { texts: [], replaced: () => response } : everyText(response);
}

function everyText(response: unknown): ResponseTexts {
  const isTranscript = typeof membersOf(response)?.['text'] === 'string';
  const item = textsOf(response, isTranscript ? ['text'] : undefined);
  return {
    texts: item.texts.map(guardedText),
    replaced(masked) {
      const replaced = item.replaced(masked);
      if (!isTranscript) return replaced;
      // They repeat the text of a transcript in pieces, which may have parts of what was masked.
      const { words: _words, segments: _segments, ...rest } = membersOf(replaced) ?? {};
      return rest;
    },
  };
}

function itemsOf(value: Members, field: OutputField, items: readonly unknown[]): ResponseTexts {
  const found = items.map((item) => textsOf(item, contentPathOf(item, field)));
  return {
    texts: found.flatMap(({ texts }) => texts.map(guardedText)),
    replaced(masked) {
      let from = 0;
      const replaced = found.map((item) => {
        const own = masked.slice(from, from + item.texts.length);
        from += item.texts.length;
        return item.replaced(own);
      });
      // Some providers repeat the text of all items here.
      const { output_text: _text, ...rest } = value;
      return { ...rest, [field]: replaced };
    },
  };
}

const guardedText = ({ text, part, path }: FoundText): GuardedText => ({
  role: 'assistant',
  content: text,
  part,
  ...jsonOf(part, path),
});

function textsOf(item: unknown, contentPath: TextPath | undefined): ItemTexts {
  try {
    return new ItemTexts(item, contentPath);
  } catch (error) {
    if (error instanceof NestingError) throw failed('response', 'a text is nested too deeply');
    throw error;
  }
}

/** Where an item of the output has its content; undefined if it has none, as a tool call. */
function contentPathOf(item: unknown, field: OutputField): TextPath | undefined {
  const { text, content, message } = membersOf(item) ?? {};
  if (field === 'output')
    return Array.isArray(content) || typeof content === 'string' ? ['content'] : undefined;
  if (typeof text === 'string') return ['text'];
  // Texts and thoughts are parts of the same list.
  if (field === 'content' || field === 'candidates') return undefined;
  const { content: own, refusal } = membersOf(message) ?? {};
  // A model that refuses has no other content.
  const isRefusal = (own ?? '') === '' && typeof refusal === 'string' && refusal !== '';
  return ['message', isRefusal ? 'refusal' : 'content'];
}
