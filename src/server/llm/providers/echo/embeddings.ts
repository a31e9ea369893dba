import type { Reply } from '../../../kernel/request/request-context.ts';
import { packedVector } from '../../formats/embeddings/packed-vector.ts';
import { membersOf } from '../../json-members.ts';
import { json, required } from './reply.ts';
import { type Body, flatText, textOf, textsOf, wordsOf } from './words.ts';

/** One embedding for each text of a list. */
export function embeddings(body: Body): Reply {
  const texts = textsOf(required(body, 'input'));
  const tokens = texts.reduce((sum, text) => sum + wordsOf(text).length, 0);
  // The default of the official clients.
  const isPacked = body['encoding_format'] === 'base64';
  const data = texts.map((text, index) => ({
    object: 'embedding',
    index,
    embedding: isPacked ? packedVector(embedding(text)) : embedding(text),
  }));
  const usage = { prompt_tokens: tokens, total_tokens: tokens };
  return json({ object: 'list', data, model: textOf(body['model']), usage });
}

/** Three numbers that depend only on the text: enough to see that embeddings work. */
function embedding(text: string): number[] {
  return [text.length / 100, text.split(' ').length / 10, (text.codePointAt(0) ?? 0) / 1000];
}

/** `embedContent` of the Gemini API. */
export function embeddedContent(body: Body): Reply {
  const text = flatText(membersOf(required(body, 'content'))?.['parts']);
  return json({
    embedding: { values: embedding(text) },
    usageMetadata: { promptTokenCount: wordsOf(text).length },
  });
}

/** `batchEmbedContents` of the Gemini API. */
export function embeddedContents(body: Body): Reply {
  const requests = required(body, 'requests');
  const texts = (Array.isArray(requests) ? (requests as unknown[]) : []).map((request) =>
    flatText(membersOf(membersOf(request)?.['content'])?.['parts']),
  );
  const tokens = texts.reduce((sum, text) => sum + wordsOf(text).length, 0);
  return json({
    embeddings: texts.map((text) => ({ values: embedding(text) })),
    usageMetadata: { promptTokenCount: tokens },
  });
}
