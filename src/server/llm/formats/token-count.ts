import { fieldsOf, requireList } from './counted-fields.ts';
import { defineFormat } from './format.ts';
import { anthropicApi, messages } from './messages/index.ts';

/** Counting the tokens of a message without sending it, which Anthropic does not charge for. */
export const tokenCount = defineFormat({
  ...anthropicApi,
  key: 'anthropicTokenCount',
  paths: ['/messages/count_tokens'],
  routeType: 'AnthropicTokenCount',
  isRoutable: true,
  operation: 'other',
  hasNoText: true,
  hasOnlyData: true,
  isFree: true,
  promptFields: messages.promptFields ?? [],
  tokenCount: {
    parts(body) {
      requireList(body, 'messages');
      return fieldsOf(body, ['system', 'messages', 'tools']);
    },
    response: (count) => ({ input_tokens: count }),
  },
  // The `input_tokens` of its response are the result, not usage.
  report: () => ({}),
  usage: () => undefined,
  output: () => undefined,
});
