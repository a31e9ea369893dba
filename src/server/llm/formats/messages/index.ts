import type { MemberNames } from '../../chat/chat-format.ts';
import { isBlank } from '../../chat/event-data.ts';
import { hasErrorObject, readProviderError } from '../../chat/provider-error.ts';
import { membersOf } from '../../json-members.ts';
import { OF_COMPLETIONS } from '../default-fields.ts';
import { type ClientError, defineFormat, type WireFormat } from '../format.ts';
import { addMessages } from './added-messages.ts';
import { cacheMarks } from './cache-marks.ts';
import { writeError } from './error.ts';
import { messagesEvents } from './event-texts.ts';
import { completion, streamedOutput } from './output.ts';
import { eventReader } from './read-events.ts';
import { readRequest } from './read-request.ts';
import { readResponse } from './read-response.ts';
import { addReport, anthropicUsage, readUsage, withoutPlaceholder } from './usage.ts';
import { eventWriter } from './write-events.ts';
import { writeRequest } from './write-request.ts';
import { writeResponse } from './write-response.ts';

const memberNames: MemberNames = {
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

/** What the formats of the Anthropic API have in common. */
export const anthropicApi: Pick<WireFormat, 'wrapsRejections' | 'isError' | 'errorBody' | 'errorEvent'> = {
  wrapsRejections: true,
  isError: (body) => {
    const type = membersOf(body)?.['type'];
    return hasErrorObject(body) && (type === undefined || type === 'error');
  },
  errorBody: anthropicError,
  errorEvent: (error) => `event: error\ndata: ${JSON.stringify(anthropicError(error))}\n\n`,
};

/** Anthropic's Messages API. */
export const messages = defineFormat({
  ...anthropicApi,
  key: 'messages',
  paths: ['/messages'],
  // Required by every call (API reference, "Versions").
  isSpokenBy: ({ headers }) => headers.has('anthropic-version'),
  routeType: 'Messages',
  isRoutable: true,
  operation: 'chat',
  defaultFields: {
    without: new Set([...OF_COMPLETIONS, 'user', 'parallel_tool_calls', 'top_logprobs', 'store']),
  },
  // Otherwise tools change what is in a container at the provider.
  isCacheable: (body) => !body.has('container'),
  chat: {
    key: 'messages',
    path: () => '/messages',
    // API reference, "Versions". Compatible servers ignore it.
    headers: { 'anthropic-version': '2023-06-01' },
    memberNames,
    readRequest,
    writeRequest,
    readResponse,
    readUsage: (body) => readUsage(body['usage']),
    writeResponse,
    readError: readProviderError,
    writeError,
    eventReader,
    eventWriter,
  },
  cacheMarks,
  promptFields: [
    { name: 'messages', isConversation: true, isPrompt: true },
    { name: 'system', isSystem: true, isConversation: true },
  ],
  definitions: ['tools', 'tool_choice', 'output_format'],
  formatPath: ['output_config', 'format'],
  numbers: { tokens: ['max_tokens'] },
  addMessages,
  outputFields: [
    { name: 'content', contentPath: ({ text }) => (typeof text === 'string' ? ['text'] : undefined) },
  ],
  eventTexts: messagesEvents,
  completion,
  streamedOutput,
  shape: {
    api: 'the Messages API',
    has: ({ type }) => TYPES.has(type),
    isAnswer: ({ type, content }) => TYPES.has(type) || Array.isArray(content),
    isStrict: true,
    isLast: ({ type, delta }) =>
      type === 'message_stop' || (type === 'message_delta' && !isBlank(membersOf(delta)?.['stop_reason'])),
  },
  deltaMark: Buffer.from('content_block_delta'),
  endMarks: [Buffer.from('message_stop')],
  // `message_start` contains the message, with the input tokens; `message_delta` has the final counts.
  report: (value) => membersOf(value['message']) ?? value,
  usage: anthropicUsage,
  addReport: (before, report, { type }) =>
    addReport(before, type === 'message_start' ? withoutPlaceholder(report) : report),
  output: ({ type, content, delta }) => (type === 'content_block_delta' ? delta : content),
  modelList: {
    entry: (id, startedAt) => ({
      type: 'model',
      id,
      display_name: id,
      created_at: new Date(startedAt * 1000).toISOString(),
    }),
    page: (data) => ({
      data,
      has_more: false,
      first_id: data[0]?.id ?? null,
      last_id: data.at(-1)?.id ?? null,
    }),
  },
});

/** Types of its events, and of a message. */
const TYPES: ReadonlySet<unknown> = new Set([
  'message',
  'message_start',
  'message_delta',
  'message_stop',
  'content_block_start',
  'content_block_delta',
  'content_block_stop',
]);

/** Anthropic's documentation, "Errors". Other statuses below 500 are `invalid_request_error`, from 500 `api_error`. */
const ERROR_TYPES: ReadonlyMap<number, string> = new Map([
  [401, 'authentication_error'],
  [402, 'billing_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [413, 'request_too_large'],
  [429, 'rate_limit_error'],
  [504, 'timeout_error'],
  [529, 'overloaded_error'],
]);

/** Failures of the gateway itself that clients should retry later. */
const OVERLOADED: ReadonlySet<string> = new Set(['overloaded', 'gateway_closing']);

function anthropicError({ status, code, message }: ClientError): object {
  const type = OVERLOADED.has(code)
    ? 'overloaded_error'
    : (ERROR_TYPES.get(status) ?? (status < 500 ? 'invalid_request_error' : 'api_error'));
  return { type: 'error', error: { type, message } };
}
