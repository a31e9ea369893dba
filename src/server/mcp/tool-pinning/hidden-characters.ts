/**
 * Characters that an editor or terminal does not show, or that change what it shows, while a model reads them: controls,
 * zero-width and direction-changing characters, and the tag characters U+E0000 to U+E0FFF, which can spell whole sentences.
 */
const HIDDEN = /[\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e0fff}]/gu;

export const hasHidden = (text: string): boolean => text.search(HIDDEN) !== -1;

/** Replaces hidden characters by an escape. */
export function withVisible(text: string, toEscape: (code: number) => string): string {
  return text.replace(HIDDEN, (character) => toEscape(character.codePointAt(0) ?? 0));
}
