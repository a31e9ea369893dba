import { randomUUID } from 'node:crypto';
import type { Exchange, Reply } from '../../http/exchange.ts';
import { HeaderList } from '../../http/header-list.ts';
import type { LlmCall } from '../log-fields.ts';
import { defineProvider } from './provider.ts';

/**
 * A model that says what it was told, without a key or a network: for trying things out. Words count as tokens.
 */
export const echo = defineProvider({
  key: 'echo',
  aliases: [],
  telemetryName: 'echo',
  baseUrl: undefined,
  answer,
});

function answer(
  _x: Exchange,
  { operation, streaming }: LlmCall,
  body: Readonly<Record<string, unknown>>,
): Reply {
  const model = String(body['model']);
  const prompt = promptOf(body);
  const words = prompt.split(/\s+/).filter((word) => word !== '');
  const limit = typeof body['max_tokens'] === 'number' ? body['max_tokens'] : Number.POSITIVE_INFINITY;
  const said = words.slice(0, Math.max(0, limit));
  const finish = said.length < words.length ? 'length' : 'stop';
  const usage = {
    prompt_tokens: words.length,
    completion_tokens: said.length,
    total_tokens: words.length + said.length,
  };
  const head = { id: `chatcmpl-${randomUUID()}`, created: Math.floor(Date.now() / 1000), model };
  if (operation === 'embeddings')
    return json({
      object: 'list',
      model,
      data: [{ object: 'embedding', index: 0, embedding: embedding(prompt) }],
      usage: { prompt_tokens: words.length, total_tokens: words.length },
    });
  if (streaming) return streamed(head, said, finish, wantsUsage(body) ? usage : undefined);
  return json({
    ...head,
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content: said.join(' ') }, finish_reason: finish }],
    usage,
  });
}

function promptOf(body: Readonly<Record<string, unknown>>): string {
  const { messages, prompt, input } = body;
  const last = Array.isArray(messages)
    ? ((messages as { content?: unknown }[]).at(-1)?.content ?? '')
    : (prompt ?? input ?? '');
  return typeof last === 'string' ? last : JSON.stringify(last);
}

function wantsUsage(body: Readonly<Record<string, unknown>>): boolean {
  return (body['stream_options'] as { include_usage?: unknown } | undefined)?.include_usage === true;
}

/** Three numbers that depend on the text alone; enough to see that embeddings arrive. */
function embedding(text: string): number[] {
  return [text.length / 100, text.split(' ').length / 10, (text.codePointAt(0) ?? 0) / 1000];
}

function json(value: object): Reply {
  return {
    status: 200,
    headers: new HeaderList(['content-type', 'application/json']),
    body: JSON.stringify(value),
  };
}

function streamed(head: object, words: readonly string[], finish: string, usage: object | undefined): Reply {
  const chunk = (choices: readonly object[], more: object = {}): string =>
    `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices, ...more })}\n\n`;
  const parts = words.map((word, index) =>
    chunk([
      {
        index: 0,
        delta: { ...(index === 0 ? { role: 'assistant' } : {}), content: index === 0 ? word : ` ${word}` },
        finish_reason: null,
      },
    ]),
  );
  const last = chunk([{ index: 0, delta: {}, finish_reason: finish }]);
  const counted = usage === undefined ? '' : chunk([], { usage });
  return {
    status: 200,
    headers: new HeaderList(['content-type', 'text/event-stream']),
    body: `${parts.join('')}${last}${counted}data: [DONE]\n\n`,
  };
}
