import type { AppError } from '../../../core/errors.ts';
import { isRecord } from '../../../core/foreign.ts';
import type { RequestContext } from '../../kernel/request-context.ts';
import type { LlmCall } from '../call.ts';
import { isEmpty } from '../chat/event-data.ts';
import { llmError } from '../errors.ts';
import type { FormatKey } from '../formats/format.ts';

// A provider that is configured with a format it does not have answers in another one, or with anything: a proxy that
// returns chat chunks for /v1/responses, a page of a load balancer, JSON in place of a stream. A
// client that takes it for its own format reads an empty answer.

const APIS = {
  completions: 'the Chat Completions API',
  messages: 'the Messages API',
  responses: 'the Responses API',
  generateContent: 'the Gemini API',
};

/** Types of the events of the Messages API, and of its message. */
const MESSAGES_TYPES: ReadonlySet<unknown> = new Set([
  'message',
  'message_start',
  'message_delta',
  'message_stop',
  'content_block_start',
  'content_block_delta',
  'content_block_stop',
]);

/** The format of an answer, or of an event of a stream, as far as it can be told. */
function shapeOf(value: Readonly<Record<string, unknown>>): keyof typeof APIS | undefined {
  const { choices, candidates, object, type } = value;
  if (Array.isArray(choices) || (typeof object === 'string' && object.startsWith('chat.completion')))
    return 'completions';
  if (Array.isArray(candidates)) return 'generateContent';
  if (object === 'response' || (typeof type === 'string' && type.startsWith('response.'))) return 'responses';
  return MESSAGES_TYPES.has(type) ? 'messages' : undefined;
}

/** The formats whose answers are checked: servers that only have Chat Completions are often configured for these. */
type Checked = 'messages' | 'responses';

export const hasShape = (format: FormatKey | undefined): format is Checked =>
  format === 'messages' || format === 'responses';

/** What is wrong with an event of a stream, or with an answer; undefined if it may be of the format. */
export function otherShape(format: Checked, value: Readonly<Record<string, unknown>>): string | undefined {
  const shape = shapeOf(value);
  return shape === undefined || shape === format
    ? undefined
    : `the provider answered in the format of ${APIS[shape]}, not of ${APIS[format]}`;
}

/** What is wrong with a whole answer; undefined if nothing is. An error is none in any format. */
export function wrongAnswer({ format, streaming }: LlmCall, value: unknown): string | undefined {
  if (!hasShape(format)) return undefined;
  if (!isRecord(value)) return 'the provider answered with something else than a JSON object';
  if (!isEmpty(value['error'])) return undefined;
  if (streaming) return 'the provider answered a request for a stream with a whole response';
  return otherShape(format, value);
}

/** Ends a call whose answer is of another shape than its format: nothing of it counts. */
export function wrongShape({ endpoint }: RequestContext, call: LlmCall, why: string): AppError {
  call.progress = 'rejected';
  delete call.usage;
  delete call.outputBytes;
  delete call.completion;
  return llmError(
    'upstream_invalid',
    'upstream_failed',
    `upstream call failed: ${why}`,
    `${endpoint}: ${why}: check \`provider\` and \`baseUrl\` of the model`,
  );
}
