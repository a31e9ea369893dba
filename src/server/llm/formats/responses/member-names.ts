import type { MemberNames } from '../../chat/chat-format.ts';

export const memberNames: MemberNames = {
  turns: 'input',
  toolChoice: 'tool_choice',
  parallelToolCalls: 'parallel_tool_calls',
  maxTokens: 'max_output_tokens',
  topP: 'top_p',
  output: 'text.format',
  serviceTier: 'service_tier',
};
