import { type Members, membersOf } from '../../json-members.ts';
import { known, tokenCount, type Usage } from '../../usage.ts';
import type { ClientError, Format } from '../format.ts';

/** What the formats of the Anthropic API have in common. */
export const anthropicApi: Pick<Format, 'wrapsRejections' | 'errorBody' | 'errorEvent'> = {
  wrapsRejections: true,
  errorBody: anthropicError,
  errorEvent: (error) => `event: error\ndata: ${JSON.stringify(anthropicError(error))}\n\n`,
};

/** Anthropic's Messages API. */
export const messages: Format = {
  ...anthropicApi,
  key: 'messages',
  paths: ['/messages'],
  operation: 'chat',
  deltaMark: Buffer.from('content_block_delta'),
  endMarks: [Buffer.from('message_stop')],
  // `message_start` contains the message, with the input tokens; `message_delta` has the final counts.
  report: (value) => membersOf(value['message']) ?? value,
  usage: anthropicUsage,
  output: ({ type, content, delta }) => (type === 'content_block_delta' ? delta : content),
};

/**
 * Anthropic counts cached tokens separately: `input_tokens` excludes those read from the cache and those written to it
 * (Anthropic's documentation, "Prompt caching", "Tracking cache performance").
 */
function anthropicUsage(report: Members): Usage | undefined {
  const uncached = tokenCount(report['input_tokens']);
  const output = tokenCount(report['output_tokens']);
  if (uncached === undefined && output === undefined) return undefined;
  const cachedInput = tokenCount(report['cache_read_input_tokens']);
  const cacheWrite = tokenCount(report['cache_creation_input_tokens']);
  return {
    input: (uncached ?? 0) + (cachedInput ?? 0) + (cacheWrite ?? 0),
    output: output ?? 0,
    ...known('cachedInput', cachedInput),
    ...known('cacheWrite', cacheWrite),
    ...known('cacheWrite1h', membersOf(report['cache_creation'])?.['ephemeral_1h_input_tokens']),
    ...known('reasoning', membersOf(report['output_tokens_details'])?.['thinking_tokens']),
  };
}

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
