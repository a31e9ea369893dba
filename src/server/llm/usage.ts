import { type Members, membersOf } from './json-members.ts';

/** Token counts of one call. `input` and `output` include the detail counts. */
export interface Usage {
  readonly input: number;
  readonly output: number;
  readonly cachedInput?: number;
  readonly cacheWrite?: number;
  /** The part of `cacheWrite` that is cached for an hour, which Anthropic charges more for than for five minutes. */
  readonly cacheWrite1h?: number;
  readonly inputAudio?: number;
  readonly outputAudio?: number;
  readonly reasoning?: number;
}

/**
 * Reads a `usage` member of the OpenAI API: chat and text completions, embeddings (`prompt_tokens`), and responses, audio
 * and images (`input_tokens`). Counts that are not whole numbers from 0 to 2^40 are ignored. Undefined without an input
 * or output count.
 */
export function parseUsage(value: unknown): Usage | undefined {
  const usage = membersOf(value) ?? {};
  const input = tokenCount(usage['prompt_tokens']) ?? tokenCount(usage['input_tokens']);
  const output = tokenCount(usage['completion_tokens']) ?? tokenCount(usage['output_tokens']);
  if (input === undefined && output === undefined) return undefined;
  const inputDetails = membersOf(usage['prompt_tokens_details'] ?? usage['input_tokens_details']);
  const outputDetails = membersOf(usage['completion_tokens_details'] ?? usage['output_tokens_details']);
  return {
    input: input ?? 0,
    output: output ?? 0,
    ...known('cachedInput', inputDetails?.['cached_tokens']),
    // OpenAI's name, and an older one of other servers.
    ...known('cacheWrite', inputDetails?.['cache_write_tokens'] ?? inputDetails?.['cache_creation_tokens']),
    ...known('inputAudio', inputDetails?.['audio_tokens']),
    ...known('outputAudio', outputDetails?.['audio_tokens']),
    ...known('reasoning', outputDetails?.['reasoning_tokens']),
  };
}

/** As `parseUsage`, for calls without output tokens: some providers report only `total_tokens`. */
export function inputUsage(usage: Members): Usage | undefined {
  const total = tokenCount(usage['total_tokens']);
  return parseUsage(usage) ?? (total === undefined ? undefined : { input: total, output: 0 });
}

// 2^40 tokens exceed the context of any model, so a larger number is an error.
const MAX_TOKENS = 2 ** 40;

/** A token count; undefined if it is not a whole number from 0 to 2^40. */
export function tokenCount(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_TOKENS
    ? value
    : undefined;
}

/** The member with this count, if it is one. */
export function known(key: keyof Usage, value: unknown): Partial<Usage> {
  const number = tokenCount(value);
  return number === undefined ? {} : { [key]: number };
}
