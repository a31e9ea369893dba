import type { MemberNames } from '../../chat/chat-format.ts';

export const memberNames: MemberNames = {
  turns: 'messages',
  toolChoice: 'tool_choice',
  parallelToolCalls: 'tool_choice.disable_parallel_tool_use',
  maxTokens: 'max_tokens',
  topP: 'top_p',
  topK: 'top_k',
  stop: 'stop_sequences',
  output: 'output_config.format',
  reasoning: 'thinking',
  user: 'metadata.user_id',
  serviceTier: 'service_tier',
};
