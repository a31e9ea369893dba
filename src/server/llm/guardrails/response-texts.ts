import { flatContent, withContent } from './request-texts.ts';

/** What a whole response says, one text per choice, and the response with other texts in their place. */
export interface ResponseTexts {
  readonly contents: readonly string[];
  replaced(masked: readonly string[]): unknown;
}

type Json = Record<string, unknown>;

/** The texts of a chat or text completion (`choices`), or of a response (`output`). Embeddings say nothing. */
export function responseTexts(response: unknown): ResponseTexts {
  const value = (typeof response === 'object' && response !== null ? response : {}) as Json;
  const { choices, output } = value;
  if (Array.isArray(choices)) {
    const items = objects(choices);
    return {
      contents: items.map(choiceText),
      replaced: (masked) => ({
        ...value,
        choices: items.map((item, index) => withChoiceText(item, masked[index] ?? '')),
      }),
    };
  }
  if (Array.isArray(output)) {
    const items = objects(output);
    return {
      contents: items.map((item) => flatContent(item['content'])),
      replaced: (masked) => ({
        ...value,
        output: items.map((item, index) =>
          Array.isArray(item['content'])
            ? { ...item, content: withContent(item['content'], masked[index] ?? '') }
            : item,
        ),
      }),
    };
  }
  return { contents: [], replaced: () => response };
}

/** Items that are no objects say nothing and would be no choices for a client either. */
function objects(items: readonly unknown[]): Json[] {
  return items.map((item) => (typeof item === 'object' && item !== null ? (item as Json) : {}));
}

function choiceText(choice: Json): string {
  if (typeof choice['text'] === 'string') return choice['text'];
  return flatContent((choice['message'] as Json | undefined)?.['content']);
}

function withChoiceText(choice: Json, text: string): Json {
  if (choiceText(choice) === text) return choice;
  if (typeof choice['text'] === 'string') return { ...choice, text };
  const message = (choice['message'] ?? {}) as Json;
  return { ...choice, message: { ...message, content: withContent(message['content'], text) } };
}
