/** Token counts of one call. `input` and `output` include the detail counts. */
export interface Usage {
  readonly input: number;
  readonly output: number;
  readonly cachedInput?: number;
  readonly cacheWrite?: number;
  readonly inputAudio?: number;
  readonly outputAudio?: number;
  readonly reasoning?: number;
}

/**
 * Reads the `usage` member of an OpenAI-style response: chat and text completions, embeddings (`prompt_tokens`), and
 * responses (`input_tokens`). Counts that are not whole numbers from 0 to 2^40 are ignored. Undefined without an input
 * or output count.
 */
export function parseUsage(value: unknown): Usage | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const usage = value as Record<string, unknown>;
  const input = count(usage['prompt_tokens']) ?? count(usage['input_tokens']);
  const output = count(usage['completion_tokens']) ?? count(usage['output_tokens']);
  if (input === undefined && output === undefined) return undefined;
  const inputDetails = details(usage['prompt_tokens_details'] ?? usage['input_tokens_details']);
  const outputDetails = details(usage['completion_tokens_details'] ?? usage['output_tokens_details']);
  return {
    input: input ?? 0,
    output: output ?? 0,
    ...known('cachedInput', inputDetails['cached_tokens']),
    ...known('cacheWrite', inputDetails['cache_creation_tokens']),
    ...known('inputAudio', inputDetails['audio_tokens']),
    ...known('outputAudio', outputDetails['audio_tokens']),
    ...known('reasoning', outputDetails['reasoning_tokens']),
  };
}

// 2^40 tokens exceed the context of any model, so a larger number is an error.
const MAX_TOKENS = 2 ** 40;

function count(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_TOKENS
    ? value
    : undefined;
}

function details(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function known(key: string, value: unknown): Record<string, number> {
  const number = count(value);
  return number === undefined ? {} : { [key]: number };
}
