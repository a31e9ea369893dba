import { randomUUID } from 'node:crypto';
import type { Reply } from '../../../kernel/request/request-context.ts';
import { json, required } from './reply.ts';
import { type Body, textOf } from './words.ts';

/** The categories of OpenAI's `omni-moderation-latest`. */
const CATEGORIES = [
  'harassment',
  'harassment/threatening',
  'hate',
  'hate/threatening',
  'illicit',
  'illicit/violent',
  'self-harm',
  'self-harm/instructions',
  'self-harm/intent',
  'sexual',
  'sexual/minors',
  'violence',
  'violence/graphic',
];

/** One result for each text of a list, never flagged. Parts of one multi-modal input have one result together. */
export function moderation(body: Body): Reply {
  const input = required(body, 'input');
  const isList = Array.isArray(input) && (input as unknown[]).every((item) => typeof item === 'string');
  const of = (value: unknown): object => Object.fromEntries(CATEGORIES.map((name) => [name, value]));
  const result = {
    flagged: false,
    categories: of(false),
    category_scores: of(0),
    category_applied_input_types: of(['text']),
  };
  return json({
    id: `modr-${randomUUID()}`,
    model: textOf(body['model'] ?? 'omni-moderation-latest'),
    results: isList ? (input as unknown[]).map(() => result) : [result],
  });
}
