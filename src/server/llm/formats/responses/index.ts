import type { MemberNames } from '../../chat/chat-format.ts';
import { type Completion, completionOfItems } from '../../chat/conversation.ts';
import { readProviderError } from '../../chat/provider-error.ts';
import { membersOf } from '../../json-members.ts';
import { parseUsage } from '../../usage.ts';
import { surround } from '../added-messages.ts';
import { OF_COMPLETIONS } from '../default-fields.ts';
import { defineFormat } from '../format.ts';
import { openAiApi } from '../openai-api.ts';
import { writeOpenAiError } from '../openai-error.ts';
import { responsesEvents } from './event-texts.ts';
import { eventReader } from './read-events.ts';
import { readRequest } from './read-request.ts';
import { readResponse } from './read-response.ts';
import { eventWriter } from './write-events.ts';
import { writeRequest } from './write-request.ts';
import { writeResponse } from './write-response.ts';

const memberNames: MemberNames = {
  turns: 'input',
  toolChoice: 'tool_choice',
  parallelToolCalls: 'parallel_tool_calls',
  maxTokens: 'max_output_tokens',
  topP: 'top_p',
  output: 'text.format',
  serviceTier: 'service_tier',
};

/** The Responses API of OpenAI. */
export const responses = defineFormat({
  ...openAiApi,
  key: 'responses',
  paths: ['/responses'],
  routeType: 'Responses',
  isRoutable: true,
  operation: 'responses',
  defaultFields: {
    without: new Set([...OF_COMPLETIONS, 'thinking', 'top_k']),
    renamed: new Map([['max_tokens', 'max_output_tokens']]),
  },
  // The response is only begun, or becomes part of a conversation at the provider.
  isCacheable: (body) => body.get('background') !== true && !body.has('conversation'),
  chat: {
    key: 'responses',
    path: () => '/responses',
    memberNames,
    readRequest,
    writeRequest,
    readResponse,
    readUsage: (body) => parseUsage(body['usage']),
    writeResponse,
    readError: readProviderError,
    writeError: writeOpenAiError,
    eventReader,
    eventWriter,
  },
  promptFields: [
    // A template at the provider.
    { name: 'prompt', isPrompt: true },
    { name: 'instructions', isSystem: true },
    { name: 'input', isConversation: true, isPrompt: true },
  ],
  definitions: ['tools', 'tool_choice'],
  formatPath: ['text', 'format'],
  numbers: { tokens: ['max_output_tokens'] },
  addMessages(body, added) {
    const input = body.get('input');
    // The API reference, "Create a model response": a text is a message of the user.
    if (typeof input === 'string') body.set('input', [{ role: 'user', content: input }]);
    surround(body, 'input', added);
  },
  outputFields: [
    {
      name: 'output',
      contentPath: ({ content }) =>
        Array.isArray(content) || typeof content === 'string' ? ['content'] : undefined,
    },
  ],
  // OpenAI's API reference, "The response object".
  repeatedFields: new Set([
    'instructions',
    'tools',
    'tool_choice',
    'text',
    'metadata',
    'prompt',
    'user',
    'safety_identifier',
    'prompt_cache_key',
  ]),
  eventTexts: responsesEvents,
  completion,
  streamedOutput({ type, response, delta }) {
    if (type === 'response.completed') return [{ whole: completion(membersOf(response) ?? {}) ?? NOTHING }];
    return type === 'response.output_text.delta' ? [{ index: 0, text: delta }] : [];
  },
  shape: {
    api: 'the Responses API',
    has: ({ object, type }) =>
      object === 'response' || (typeof type === 'string' && type.startsWith('response.')),
    isAnswer: ({ object, type, output }) =>
      object === 'response' ||
      Array.isArray(output) ||
      (typeof type === 'string' && type.startsWith('response.')),
    isStrict: true,
    isLast: ({ type }) => typeof type === 'string' && LAST.test(type),
  },
  deltaMark: Buffer.from('.delta"'),
  endMarks: ['completed', 'incomplete', 'failed'].map((how) => Buffer.from(`"response.${how}"`)),
  // OpenAI's API reference, "Streaming events": `error` has its members at the top, and a sequence number.
  errorEvent({ code, message }, last) {
    const before = last?.['sequence_number'];
    const event = {
      type: 'error',
      code,
      message,
      param: null,
      sequence_number: typeof before === 'number' ? before + 1 : 0,
    };
    return `event: error\ndata: ${JSON.stringify(event)}\n\n`;
  },
});

/** OpenAI's API reference, "Streaming events". */
const LAST = /^response\.(?:completed|incomplete|failed|cancelled|done)$/;

const NOTHING: Completion = { texts: [], toolCalls: [] };

function completion({ output }: Readonly<Record<string, unknown>>): Completion | undefined {
  return completionOfItems(output);
}
