import type { MemberNames } from '../../chat/chat-format.ts';
import { readProviderError } from '../../chat/provider-error.ts';
import { parseUsage } from '../../usage.ts';
import { surround } from '../added-messages.ts';
import { defineFormat } from '../format.ts';
import { openAiApi } from '../openai-api.ts';
import { writeOpenAiError } from '../openai-error.ts';
import { choicesApi, choiceUsage } from './choices.ts';
import { eventReader } from './read-events.ts';
import { readRequest } from './read-request.ts';
import { readResponse } from './read-response.ts';
import { eventWriter } from './write-events.ts';
import { maxTokensName, writeRequest } from './write-request.ts';
import { writeResponse } from './write-response.ts';

const memberNames: MemberNames = {
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

/** The Chat Completions API of OpenAI and compatible servers. */
export const chatCompletions = defineFormat({
  ...openAiApi,
  ...choicesApi,
  key: 'completions',
  paths: ['/chat/completions'],
  routeType: 'Completions',
  isRoutable: true,
  operation: 'chat',
  // Otherwise the provider keeps the completion, for its dashboard.
  isCacheable: (body) => body.get('store') !== true,
  chat: {
    key: 'completions',
    path: () => '/chat/completions',
    memberNames,
    readRequest,
    writeRequest,
    readResponse,
    readUsage: (body) => parseUsage(choiceUsage(body) ?? body['usage']),
    writeResponse,
    readError: readProviderError,
    writeError: writeOpenAiError,
    eventReader,
    eventWriter,
  },
  promptFields: [
    { name: 'messages', isConversation: true, isPrompt: true },
    { name: 'prediction', isContent: true, isUncounted: true },
  ],
  definitions: ['tools', 'functions', 'function_call', 'tool_choice', 'response_format', 'json_schema'],
  numbers: { tokens: ['max_tokens', 'max_completion_tokens'], answers: ['n'] },
  adapt(body, model) {
    if (!body.has('max_tokens') || maxTokensName(model) === 'max_tokens') return;
    if (!body.has('max_completion_tokens')) body.set('max_completion_tokens', body.get('max_tokens'));
    body.remove('max_tokens');
  },
  addMessages: (body, added) => surround(body, 'messages', added),
});
