import { isRecord } from '../../../../core/foreign.ts';
import { type Members, membersOf } from '../../json-members.ts';
import { mergedReport, tokenCount, type Usage } from '../../usage.ts';

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

/**
 * The usage report of a stream with that of a later event. Compatible servers only know at the end what they have read from the cache:
 * their `message_start` has the whole prompt as `input_tokens`, and their `message_delta` the rest of it beside the cache (Kimi,
 * maximhq/bifrost#5354) or only the cache (Qwen, jeremychone/rust-genai#258). The largest of each would count the prompt twice.
 */
export function addReport(before: Members, report: Members): Members {
  const merged = mergedReport(before, report);
  const whole = tokenCount(before['input_tokens']) ?? 0;
  const cached = cachedTokens(report);
  if (cached === 0 || cachedTokens(before) > 0) return merged;
  const rest = tokenCount(report['input_tokens']);
  if (rest !== undefined)
    return rest < whole && rest + cached >= whole ? { ...merged, input_tokens: rest } : merged;
  return CACHED.some((name) => name in before)
    ? merged
    : { ...merged, input_tokens: Math.max(0, whole - cached) };
}

const CACHED = ['cache_read_input_tokens', 'cache_creation_input_tokens'];

const cachedTokens = (report: Members): number =>
  CACHED.reduce((sum, name) => sum + (tokenCount(report[name]) ?? 0), 0);
