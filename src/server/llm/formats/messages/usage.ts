import { isRecord } from '../../../../core/foreign.ts';
import { type Members, membersOf } from '../../json-members.ts';
import { tokenCount, type Usage } from '../../usage.ts';

/**
 * Anthropic counts cached tokens separately: `input_tokens` excludes those read from the cache and those written to it
 * (Anthropic's documentation, "Prompt caching", "Tracking cache performance").
 */
export function anthropicUsage(report: Members): Usage | undefined {
  const uncached = tokenCount(report['input_tokens']);
  const output = tokenCount(report['output_tokens']);
  if (uncached === undefined && output === undefined) return undefined;
  const cachedInput = tokenCount(report['cache_read_input_tokens']);
  const cacheWrite = tokenCount(report['cache_creation_input_tokens']);
  return {
    input: (uncached ?? 0) + (cachedInput ?? 0) + (cacheWrite ?? 0),
    output: output ?? 0,
    cachedInput,
    cacheWrite,
    cacheWrite1h: tokenCount(membersOf(report['cache_creation'])?.['ephemeral_1h_input_tokens']),
    reasoning: tokenCount(membersOf(report['output_tokens_details'])?.['thinking_tokens']),
  };
}

/** The counts of a response that is translated: those that it lacks are 0. Undefined if it has no `usage`. */
export const readUsage = (usage: unknown): Usage | undefined =>
  isRecord(usage) ? (anthropicUsage(usage) ?? { input: 0, output: 0 }) : undefined;

/** The report of `message_start`, which has 1 as output before there is any. */
export const withoutPlaceholder = (report: Members): Members =>
  report['output_tokens'] === 1 ? { ...report, output_tokens: undefined } : report;
