import type { Format } from './format.ts';
import { anthropicApi } from './messages/index.ts';

/** Counting the tokens of a message without sending it, which Anthropic does not charge for. */
export const tokenCount: Format = {
  ...anthropicApi,
  key: 'anthropicTokenCount',
  paths: ['/messages/count_tokens'],
  operation: 'other',
  hasNoText: true,
  isFree: true,
  // The `input_tokens` of its response are the result, not usage.
  report: () => ({}),
  usage: () => undefined,
  output: () => undefined,
};
