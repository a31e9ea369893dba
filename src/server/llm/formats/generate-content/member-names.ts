import type { MemberNames } from '../../chat/chat-format.ts';

export const memberNames: MemberNames = {
  turns: 'contents',
  system: 'systemInstruction',
  toolChoice: 'toolConfig.functionCallingConfig',
  maxTokens: 'generationConfig.maxOutputTokens',
  temperature: 'generationConfig.temperature',
  topP: 'generationConfig.topP',
  topK: 'generationConfig.topK',
  stop: 'generationConfig.stopSequences',
  presencePenalty: 'generationConfig.presencePenalty',
  frequencyPenalty: 'generationConfig.frequencyPenalty',
  seed: 'generationConfig.seed',
  count: 'generationConfig.candidateCount',
  output: 'generationConfig.responseMimeType',
  reasoning: 'generationConfig.thinkingConfig',
  metadata: 'labels',
};
