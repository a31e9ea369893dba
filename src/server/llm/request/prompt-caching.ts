import { z } from 'zod';
import { elementsOf, membersOf } from '../../../core/foreign.ts';
import { BYTES_PER_TOKEN } from '../../kernel/token-estimate.ts';
import { type ProviderFormatKey, providerFormatOf } from '../formats/index.ts';
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

/** Marks of one request, of the client and of the gateway: more are an error (Anthropic, Bedrock: "Prompt caching"). */
const MAX_MARKS = 4;

/** Marks a request, as it is sent, at the end of what is the same in the next request. */
export function markCached(
  body: CallBody,
  { format, model }: { readonly format: ProviderFormatKey | undefined; readonly model: string },
  caching: PromptCaching,
): void {
  const marks = providerFormatOf(format)?.cacheMarks;
  if (marks === undefined || marks.supports?.(model) === false) return;
  const list = elementsOf(body.get('messages'));
  const system = blocksOf(body.get('system'));
  const tools = marks.tools(body);
  const count = (blocks: unknown): number =>
    Array.isArray(blocks) ? blocks.filter(marks.isMarked).length : 0;
  const inMessages = list.reduce<number>((sum, message) => sum + count(membersOf(message)['content']), 0);
  const whole = body.has('cache_control') ? 1 : 0;
  let left = MAX_MARKS - whole - count(system) - count(tools.list) - inMessages;
  const mark = (blocks: unknown, put: (marked: unknown[]) => void): void => {
    if (
      left <= 0 ||
      !Array.isArray(blocks) ||
      blocks.every((block) => marks.isUnmarkable?.(block) === true) ||
      count(blocks) > 0
    )
      return;
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
  if (caching.cacheTools && marks.supportsTools?.(model) !== false) mark(tools.list, tools.put);
}

/** Text as a list of blocks. */
function blocksOf(content: unknown): unknown {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content;
}
