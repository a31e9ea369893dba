// Clients give a model the structured content of a result or its text, few give it both (docs/decisions). So one of them has the whole
// passages, and the other one a summary.
import { z } from 'zod';
import { counted } from '../../core/render/counted.ts';
import { excerptOf } from './excerpt.ts';
import { oneLine, quoted } from './stored-text.ts';

/** Which part of a result has the whole passages. */
export const passagesIn = z
  .enum(['structuredContent', 'text'])
  .default('structuredContent')
  .describe(
    'Which part of the result has the whole passages; the other one has excerpts. Use "text" if you see only excerpts.',
  );

export type PassagesIn = z.output<typeof passagesIn>;

interface Passage {
  readonly content: string;
  readonly truncated?: boolean | undefined;
}

/** What structured content has of passages: excerpts, if the text has the passages. */
export function structuredPassages<P extends Passage>(
  passages: readonly P[],
  query: string,
  where: PassagesIn,
): P[] {
  if (where === 'structuredContent') return [...passages];
  return passages.map((passage) => {
    const content = excerptOf(passage.content, query);
    return content === passage.content ? passage : { ...passage, content, truncated: true };
  });
}

/** A passage in the text of a result. */
export interface ShownPassage {
  /** Where it is from; shown in one line. */
  readonly heading: string;
  /** What else is to be known of it. */
  readonly note?: string | undefined;
  readonly content: string;
}

/**
 * The text of a result: each passage below its heading, whole or as an excerpt, in Markdown, and quoted.
 *
 * @param what of what there are so many, in the singular
 */
export function textOfPassages(
  what: string,
  passages: readonly ShownPassage[],
  query: string,
  where: PassagesIn,
): string {
  let isCut = false;
  const shown = passages.map(({ heading, note, content }, index) => {
    const text = where === 'text' ? content : excerptOf(content, query);
    isCut ||= text !== content;
    return [`## ${index + 1}. ${oneLine(heading)}`, ...(note === undefined ? [] : [note]), quoted(text)].join(
      '\n\n',
    );
  });
  const cut = isCut
    ? `, as excerpts. structuredContent has the whole text; where only this is visible, call again with passagesIn: "text"`
    : '';
  const count = passages.length === 0 ? `No ${what}s` : counted(passages.length, what);
  return [`${count}${cut}.`, ...shown].join('\n\n');
}
