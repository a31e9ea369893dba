import { randomUUID } from 'node:crypto';
import type { Reply } from '../../../kernel/request/request-context.ts';
import { membersOf } from '../../json-members.ts';
import { InvalidRequest, json, required } from './reply.ts';
import { type Body, textOf, wordsOf } from './words.ts';

/** Ranks documents by the share of the words of the query that they contain. */
export function rerank(body: Body): Reply {
  const query = wordsOf(textOf(required(body, 'query')).toLowerCase());
  const documents = required(body, 'documents');
  if (!Array.isArray(documents))
    throw new InvalidRequest('invalid_type', "Invalid type for 'documents': expected a list.");
  const texts = documents.map((document) => textOf(membersOf(document)?.['text'] ?? document));
  const ranked = texts
    .map((text, index) => {
      const words = new Set(wordsOf(text.toLowerCase()));
      const found = query.filter((word) => words.has(word)).length;
      return { index, relevance_score: query.length === 0 ? 0 : found / query.length };
    })
    .sort((a, b) => b.relevance_score - a.relevance_score);
  const most = body['top_n'];
  const results = typeof most === 'number' ? ranked.slice(0, Math.max(0, most)) : ranked;
  const tokens = texts.reduce((sum, text) => sum + wordsOf(text).length, query.length);
  const usage = { prompt_tokens: tokens, total_tokens: tokens };
  return json({ id: randomUUID(), model: textOf(body['model']), results, usage });
}
