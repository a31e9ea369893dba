import type { Reply } from '../../../kernel/request-context.ts';
import { json, required } from './reply.ts';
import { type Body, textOf, textsOf, wordsOf } from './words.ts';

/** One embedding for each text of a list. */
export function embeddings(body: Body): Reply {
  const texts = textsOf(required(body, 'input'));
  const tokens = texts.reduce((sum, text) => sum + wordsOf(text).length, 0);
  // The default of the official clients.
  const isPacked = body['encoding_format'] === 'base64';
  const data = texts.map((text, index) => ({
    object: 'embedding',
    index,
    embedding: isPacked ? packed(embedding(text)) : embedding(text),
  }));
  const usage = { prompt_tokens: tokens, total_tokens: tokens };
  return json({ object: 'list', data, model: textOf(body['model']), usage });
}

/** Three numbers that depend only on the text: enough to see that embeddings work. */
function embedding(text: string): number[] {
  return [text.length / 100, text.split(' ').length / 10, (text.codePointAt(0) ?? 0) / 1000];
}

/** Base64 of little-endian 32-bit floats. */
function packed(numbers: readonly number[]): string {
  const bytes = Buffer.alloc(numbers.length * 4);
  for (const [index, number] of numbers.entries()) bytes.writeFloatLE(number, index * 4);
  return bytes.toString('base64');
}
