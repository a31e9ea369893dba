import { z } from 'zod';
import { textBytes } from './texts.ts';
import type { Json } from './translation/chat-format.ts';

export const promptCachingSchema = z
  .strictObject({
    cacheSystem: z.boolean().default(true).describe('Cache the system prompt.'),
    cacheMessages: z
      .boolean()
      .default(true)
      .describe('Cache the conversation before its last message, from the second message on.'),
    cacheTools: z.boolean().default(false).describe('Cache the definitions of tools.'),
    minTokens: z
      .int()
      .min(0)
      .nullable()
      .default(1024)
      .describe('Estimated tokens that the system prompt must have to be cached; `null` for any.'),
    cacheMessageOffset: z
      .int()
      .min(0)
      .default(0)
      .describe('Messages before the second to last one at which the cached conversation ends.'),
  })
  .describe(
    'Cache points that the gateway adds to requests of Claude and Nova models on `bedrock`. A part of a request in which the client has set cache points itself is left as it is.',
  );

export type PromptCaching = z.output<typeof promptCachingSchema>;

/** Bedrock user guide, "Prompt caching": the models that have it. */
const SUPPORTED = /anthropic\.claude|amazon\.nova/;

const POINT: Json = { cachePoint: { type: 'default' } };

/** Roughly, in all languages that common tokenizers were made for. */
const BYTES_PER_TOKEN = 4;

/** A request of Converse with cache points at the end of what is the same in the next request. */
export function withCachePoints(body: Json, model: string, caching: PromptCaching): Json {
  if (!SUPPORTED.test(model)) return body;
  const { system, messages, toolConfig } = body;
  const tools = (toolConfig as { tools?: unknown } | undefined)?.tools;
  return {
    ...body,
    ...(caching.cacheSystem && isLong(system, caching.minTokens) ? { system: marked(system) } : {}),
    ...(caching.cacheMessages ? { messages: markedAt(messages, caching.cacheMessageOffset) } : {}),
    ...(caching.cacheTools && Array.isArray(tools)
      ? { toolConfig: { ...(toolConfig as object), tools: marked(tools) } }
      : {}),
  };
}

function isLong(system: unknown, minTokens: number | null): boolean {
  return Array.isArray(system) && textBytes(system) >= (minTokens ?? 0) * BYTES_PER_TOKEN;
}

/** A list of blocks with a cache point at its end, unless the client has set one. */
function marked(blocks: unknown): unknown {
  if (!Array.isArray(blocks) || blocks.length === 0 || blocks.some(isPoint)) return blocks;
  return [...(blocks as unknown[]), POINT];
}

const isPoint = (block: unknown): boolean =>
  typeof block === 'object' && block !== null && 'cachePoint' in block;

function markedAt(messages: unknown, offset: number): unknown {
  if (!Array.isArray(messages) || messages.length < 2) return messages;
  const list = messages as { readonly content?: unknown }[];
  if (list.some(({ content }) => Array.isArray(content) && content.some(isPoint))) return messages;
  const at = Math.max(0, list.length - 2 - offset);
  return list.map((message, index) =>
    index === at ? { ...message, content: marked(message.content) } : message,
  );
}
