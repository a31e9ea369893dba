import { elementsOf, isRecord, jsonIn } from '../../../../core/foreign.ts';
import { membersOf } from '../../json-members.ts';

/** The members of a request. */
export type Body = Readonly<Record<string, unknown>>;

/** The output for one prompt, in words, which count as tokens. */
export interface EchoOutput {
  readonly promptWords: number;
  readonly words: readonly string[];
  /** Whether the token limit of the request cut the output. */
  readonly isCut: boolean;
}

/** Repeats a prompt, up to `limit` words. */
export function echoWords(prompt: string, limit: unknown): EchoOutput {
  const all = wordsOf(prompt);
  const words = typeof limit === 'number' ? all.slice(0, Math.max(0, limit)) : all;
  return { promptWords: all.length, words, isCut: words.length < all.length };
}

/** The words as the deltas of a stream: all but the first begin with a space. */
export const deltasOf = ({ words }: EchoOutput): string[] =>
  words.map((word, at) => (at === 0 ? word : ` ${word}`));

export const wordsOf = (text: string): string[] => text.split(/\s+/).filter((word) => word !== '');

/** A text as it is, anything else as JSON. */
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** The texts of a message content, joined by a space. Other parts than text are left out. */
export function flatText(content: unknown): string {
  if (Array.isArray(content))
    return content
      .map(flatText)
      .filter((text) => text !== '')
      .join(' ');
  const text = typeof content === 'string' ? content : membersOf(content)?.['text'];
  return typeof text === 'string' ? text : '';
}

/** One or several texts. A list of token numbers counts as one text. */
export function textsOf(value: unknown): string[] {
  const isList = Array.isArray(value) && value.length > 0 && typeof value[0] !== 'number';
  return isList ? elementsOf(value).map(textOf) : [textOf(value)];
}

/** Arguments of a tool call: the prompt if it is a JSON object, else `{}`. JSON text. */
export function argumentsOf(prompt: string): string {
  return isRecord(jsonIn(prompt)) ? prompt : '{}';
}
