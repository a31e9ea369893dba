import { LIMITS } from '../../../core/limits.ts';
import { llmError } from '../errors.ts';
import { membersOf } from '../json-members.ts';
import type { CallBody } from './call-body.ts';

/** Members with the largest number of output tokens, in the formats of clients. */
export const MAXIMUM_TOKENS = ['max_tokens', 'max_completion_tokens', 'max_output_tokens'] as const;
/** Members with a number of answers, each of which costs output tokens. */
export const ANSWERS = ['n', 'best_of'] as const;

/** Both spellings are accepted by Google (protobuf's JSON mapping). */
export const GENERATION_CONFIG = ['generationConfig', 'generation_config'] as const;
const CONFIG_TOKENS = ['maxOutputTokens', 'max_output_tokens'] as const;
const CONFIG_ANSWERS = ['candidateCount', 'candidate_count'] as const;

/**
 * Rejects a request whose numbers of tokens or answers are none, such as `1e308` or `"5"`: what providers make of them
 * differs, so a budget would reserve something else than the call may cost. Null counts as absent, as OpenAI has it.
 *
 * @throws AppError (400)
 */
export function checkRequestedNumbers(body: CallBody): void {
  check(body.value, MAXIMUM_TOKENS, 0, LIMITS.llmRequestedTokens);
  check(body.value, ANSWERS, 1, LIMITS.llmRequestedAnswers);
  for (const name of GENERATION_CONFIG) {
    const config = membersOf(body.value[name]);
    if (config === undefined) continue;
    check(config, CONFIG_TOKENS, 0, LIMITS.llmRequestedTokens, `${name}.`);
    check(config, CONFIG_ANSWERS, 1, LIMITS.llmRequestedAnswers, `${name}.`);
  }
}

function check(
  members: Readonly<Record<string, unknown>>,
  names: readonly string[],
  least: number,
  most: number,
  before = '',
): void {
  for (const name of names) {
    const value = members[name];
    if (value === undefined || value === null) continue;
    if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) continue;
    throw llmError(
      'llm_invalid',
      'invalid_value',
      `\`${before}${name}\` is not a whole number from ${least} to ${most}`,
    );
  }
}
