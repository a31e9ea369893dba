import { type Members, membersOf } from './json-members.ts';

/** Token counts of one call. `input` and `output` include the detail counts. */
export interface Usage {
  readonly input: number;
  readonly output: number;
  readonly cachedInput?: number | undefined;
  readonly cacheWrite?: number | undefined;
  /** The part of `cacheWrite` that is cached for an hour, which Anthropic charges more for than for five minutes. */
  readonly cacheWrite1h?: number | undefined;
  readonly inputAudio?: number | undefined;
  /** The part of `inputAudio` that is also in `cachedInput`. */
  readonly cachedInputAudio?: number | undefined;
  readonly outputAudio?: number | undefined;
  readonly reasoning?: number | undefined;
}

/**
 * Reads a `usage` member of the OpenAI API: chat and text completions, embeddings (`prompt_tokens`), and responses, audio,
 * images and realtime sessions (`input_tokens`). Counts that are not whole numbers from 0 to 2^40 are ignored. Undefined without an input
 * or output count.
 */
export function parseUsage(value: unknown): Usage | undefined {
  const usage = membersOf(value) ?? {};
  const input = tokenCount(usage['prompt_tokens']) ?? tokenCount(usage['input_tokens']);
  const output = tokenCount(usage['completion_tokens']) ?? tokenCount(usage['output_tokens']);
  if (input === undefined && output === undefined) return undefined;
  // The Realtime API and transcriptions have `token` in the singular.
  const inputDetails = membersOf(
    usage['prompt_tokens_details'] ?? usage['input_tokens_details'] ?? usage['input_token_details'],
  );
  const outputDetails = membersOf(
    usage['completion_tokens_details'] ?? usage['output_tokens_details'] ?? usage['output_token_details'],
  );
  // OpenAI's name, an older one of DeepSeek, and that of Moonshot.
  const cachedInput = tokenCount(
    inputDetails?.['cached_tokens'] ?? usage['prompt_cache_hit_tokens'] ?? usage['cached_tokens'],
  );
  const reasoning = outputDetails?.['reasoning_tokens'];
  const extra = output === undefined ? 0 : reasoningBesides(usage, (input ?? 0) + output, reasoning);
  return {
    input: besides(cachedInput, input ?? 0),
    output: extra > 0 ? (output ?? 0) + extra : besides(tokenCount(reasoning), output ?? 0),
    cachedInput,
    // OpenAI's name, and an older one of other servers.
    cacheWrite: tokenCount(inputDetails?.['cache_write_tokens'] ?? inputDetails?.['cache_creation_tokens']),
    inputAudio: tokenCount(inputDetails?.['audio_tokens']),
    cachedInputAudio: tokenCount(membersOf(inputDetails?.['cached_tokens_details'])?.['audio_tokens']),
    outputAudio: tokenCount(outputDetails?.['audio_tokens']),
    reasoning: tokenCount(extra > 0 ? extra : reasoning),
  };
}

/** A count with a part of it. One that is larger than the whole was counted beside it, as Anthropic and xAI do. */
const besides = (part: number | undefined, whole: number): number =>
  part !== undefined && part > whole ? Math.min(whole + part, MAX_TOKENS) : whole;

/**
 * Reasoning tokens that the output count of a provider does not include, although it charges for them: only
 * `total_tokens` does. xAI reports them as a detail ("Consumption and Rate Limits": counted separately from
 * `completion_tokens`), the OpenAI-compatible part of the Gemini API not at all. 0 if the total differs for another
 * reason, such as tokens of a cache that some servers do not count as input.
 */
function reasoningBesides(usage: Members, counted: number, reasoning: unknown): number {
  const rest = (tokenCount(usage['total_tokens']) ?? 0) - counted;
  if (rest <= 0) return 0;
  const hasOnlyTotals = Object.entries(usage).every(([name, value]) => TOTALS.has(name) || value === null);
  return hasOnlyTotals || reasoning === rest ? rest : 0;
}

const TOTALS = new Set(['prompt_tokens', 'completion_tokens', 'total_tokens']);

/** As `parseUsage`, for calls without output tokens: some providers report only `total_tokens`. */
export function inputUsage(usage: Members): Usage | undefined {
  const total = tokenCount(usage['total_tokens']);
  return parseUsage(usage) ?? (total === undefined ? undefined : { input: total, output: 0 });
}

/** 2^40 tokens exceed the context of any model, so a larger number is an error. */
export const MAX_TOKENS = 2 ** 40;

/** A token count; undefined if it is not a whole number from 0 to 2^40. */
export function tokenCount(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_TOKENS
    ? value
    : undefined;
}

/**
 * The larger counts of two reports of one call. Providers repeat a report, and some of its copies have zeros in place of
 * counts that an earlier one had: `message_delta` of proxies in front of the Messages API, chunks of vLLM.
 */
export function largerUsage(one: Usage | undefined, other: Usage | undefined): Usage | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  // The usual report: nothing has fallen.
  if (COUNTS.every((key) => (other[key] ?? -1) >= (one[key] ?? -1))) return other;
  const larger: { -readonly [K in keyof Usage]: Usage[K] } = { ...one };
  for (const key of COUNTS) {
    const count = other[key] ?? -1;
    if (count > (one[key] ?? -1)) larger[key] = count;
  }
  return larger;
}

/** All counts. */
export const COUNTS = [
  'input',
  'output',
  'cachedInput',
  'cacheWrite',
  'cacheWrite1h',
  'inputAudio',
  'cachedInputAudio',
  'outputAudio',
  'reasoning',
] as const satisfies readonly (keyof Usage)[];

/**
 * The members of two usage reports of one response, of which a later one may have only some. Bounded by `MOST_MEMBERS` for each
 * object: a provider could name others in every event.
 */
export function mergedReport(before: Members, report: Members, depth = 0): Members {
  const merged = new Map(Object.entries(before));
  for (const [name, value] of Object.entries(report)) {
    const known = merged.get(name);
    if (value === null || (known === undefined && merged.size >= MOST_MEMBERS)) continue;
    const count = tokenCount(known);
    const [one, other] = [membersOf(known), membersOf(value)];
    if (count !== undefined) merged.set(name, Math.max(count, tokenCount(value) ?? 0));
    else if (depth < DEEPEST && one !== undefined && other !== undefined)
      merged.set(name, mergedReport(one, other, depth + 1));
    else merged.set(name, value);
  }
  return Object.fromEntries(merged);
}

/** Members of a usage report, of which those of any provider known here are 20; objects inside each other: details of details. */
const MOST_MEMBERS = 64;
const DEEPEST = 3;

/** Whether a report says that nothing was used. */
export const isZero = (usage: Usage | undefined): boolean =>
  usage !== undefined && usage.input === 0 && usage.output === 0;
