import type { Reply } from '../../../kernel/request/request-context.ts';
import { json, namedStream, now } from './reply.ts';
import { type Body, textOf, wordsOf } from './words.ts';

/** One white pixel, as PNG. */
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mP8/x8AAwMCAO+ip1sAAAAASUVORK5CYII=';

/** More than any model makes in one call (OpenAI: 10). */
const MOST = 10;

/** `n` images, inline whatever `response_format` says. */
export function images(body: Body, streaming: boolean): Reply {
  const words = wordsOf(textOf(body['prompt'] ?? '')).length;
  const usage = {
    input_tokens: words,
    input_tokens_details: { text_tokens: words, image_tokens: 0 },
    output_tokens: 1,
    total_tokens: words + 1,
  };
  if (streaming) {
    const event = { type: 'image_generation.completed', b64_json: PIXEL, created_at: now(), usage };
    return namedStream([event]);
  }
  const count = Math.min(Math.max(1, Number(body['n'] ?? 1) || 1), MOST);
  const data = Array.from({ length: count }, () => ({ b64_json: PIXEL }));
  return json({ created: now(), data, output_format: 'png', usage });
}
