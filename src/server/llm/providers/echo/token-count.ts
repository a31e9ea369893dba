import type { Reply } from '../../../kernel/request/request-context.ts';
import { promptOf } from './messages.ts';
import { json } from './reply.ts';
import { type Body, wordsOf } from './words.ts';

/** The input tokens that `/v1/messages` would report. */
export const tokenCount = (body: Body): Reply =>
  json({ input_tokens: wordsOf(promptOf(body).prompt).length });
