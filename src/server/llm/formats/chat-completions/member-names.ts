import type { MemberNames } from '../../chat/chat-format.ts';

export const memberNames: MemberNames = {
  turns: 'messages',
  toolChoice: 'tool_choice',
  parallelToolCalls: 'parallel_tool_calls',
  maxTokens: 'max_completion_tokens',
  topP: 'top_p',
  topK: 'top_k',
  presencePenalty: 'presence_penalty',
  frequencyPenalty: 'frequency_penalty',
  count: 'n',
  logitBias: 'logit_bias',
  output: 'response_format',
  reasoning: 'reasoning_effort',
  serviceTier: 'service_tier',
};
