import { z } from 'zod';
import { elementsOf, membersOf } from '../../../core/foreign.ts';
import { textBytes } from '../texts.ts';
import type { CallBody } from './call-body.ts';

export const promptCachingSchema = z.lazy(() =>
  z
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
      'Marks that the gateway adds to requests up to which the provider caches them: of Claude models (`anthropic`, `vertex`, `azure`, `bedrock`) and of Nova models on `bedrock`. A part of a request that the client has marked itself is left as it is.',
    ),
);

export type PromptCaching = z.output<typeof promptCachingSchema>;

/** How a wire format marks what is cached. */
interface Marks {
  readonly isMarked: (block: unknown) => boolean;
  /** The list with a mark at its end. */
  readonly marked: (blocks: readonly unknown[]) => unknown[];
  /** Where the definitions of tools are. */
  readonly tools: (body: CallBody) => { readonly list: unknown; put(list: unknown): void };
}

const isObjectWith = (block: unknown, key: string): boolean =>
  typeof block === 'object' && block !== null && key in block;

/** Converse has blocks of their own (Bedrock user guide, "Prompt caching"). */
const CONVERSE: Marks = {
  isMarked: (block) => isObjectWith(block, 'cachePoint'),
  marked: (blocks) => [...blocks, { cachePoint: { type: 'default' } }],
  tools(body) {
    const config = membersOf(body.get('toolConfig'));
    return { list: config['tools'], put: (tools) => body.set('toolConfig', { ...config, tools }) };
  },
};

/** Blocks that cannot have a mark (Anthropic, "Prompt caching": "What cannot be cached"). */
const isUnmarkable = (block: unknown): boolean => {
  const { type, text } = membersOf(block);
  return type === 'thinking' || type === 'redacted_thinking' || (type === 'text' && text === '');
};

/** The Messages API has a member of blocks and tools. */
const MESSAGES: Marks = {
  isMarked: (block) => isObjectWith(block, 'cache_control'),
  marked(blocks) {
    const last = blocks.findLastIndex((block) => !isUnmarkable(block));
    return blocks.map((block, index) =>
      index === last ? { ...membersOf(block), cache_control: { type: 'ephemeral' } } : block,
    );
  },
  tools: (body) => ({ list: body.get('tools'), put: (tools) => body.set('tools', tools) }),
};

/** Bedrock user guide, "Prompt caching": the models that have it. */
const SUPPORTED_BY_CONVERSE = /anthropic\.claude|amazon\.nova/;

/** Marks of one request, of the client and of the gateway: more are an error (Anthropic, Bedrock: "Prompt caching"). */
const MAX_MARKS = 4;

/** Roughly, in all languages that common tokenizers were made for. */
const BYTES_PER_TOKEN = 4;

/** Marks a request, as it is sent, at the end of what is the same in the next request. */
export function markCached(
  body: CallBody,
  { format, model }: { readonly format: string | undefined; readonly model: string },
  caching: PromptCaching,
): void {
  const isConverse = format === 'converse' && SUPPORTED_BY_CONVERSE.test(model);
  if (!isConverse && format !== 'messages') return;
  const marks = isConverse ? CONVERSE : MESSAGES;
  const list = elementsOf(body.get('messages'));
  const system = blocksOf(body.get('system'));
  const tools = marks.tools(body);
  const count = (blocks: unknown): number =>
    Array.isArray(blocks) ? blocks.filter(marks.isMarked).length : 0;
  const inMessages = list.reduce<number>((sum, message) => sum + count(membersOf(message)['content']), 0);
  const whole = body.has('cache_control') ? 1 : 0;
  let left = MAX_MARKS - whole - count(system) - count(tools.list) - inMessages;
  const mark = (blocks: unknown, put: (marked: unknown[]) => void): void => {
    if (left <= 0 || !Array.isArray(blocks) || blocks.every(isUnmarkable) || count(blocks) > 0) return;
    left -= 1;
    put(marks.marked(blocks));
  };
  const minBytes = (caching.minTokens ?? 0) * BYTES_PER_TOKEN;
  if (caching.cacheSystem && textBytes(system) >= minBytes)
    mark(system, (marked) => body.set('system', marked));
  // The last message is new in every request.
  const at = Math.max(0, list.length - 2 - caching.cacheMessageOffset);
  if (caching.cacheMessages && list.length > 1 && inMessages === 0)
    mark(blocksOf(membersOf(list[at])['content']), (content) => {
      body.set(
        'messages',
        list.map((message, index) => (index === at ? { ...membersOf(message), content } : message)),
      );
    });
  if (caching.cacheTools) mark(tools.list, tools.put);
}

/** Text as a list of blocks. */
function blocksOf(content: unknown): unknown {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content;
}
