import { elementsOf, isRecord } from '../../../../core/foreign.ts';
import type { AnswerPart, ChatError, ChatResponse, ChatUsage, StopReason } from '../../chat/chat.ts';
import { type Json, Unfinished, Untranslatable } from '../../chat/chat-format.ts';
import { firstMember, isEmpty, objectOf, objectsOf, requiredName, textOf } from '../../chat/event-data.ts';
import { newId } from '../../chat/new-id.ts';
import { CONTEXT_EXCEEDED, readProviderError } from '../../chat/provider-error.ts';
import { argumentsText } from '../../chat/tool-arguments.ts';
import { membersOf } from '../../json-members.ts';
import { tokenCount } from '../../usage.ts';

/** The response has neither an id nor the name of the model. */
export function readResponse({ output, stopReason, usage }: Json): ChatResponse {
  const { content } = membersOf(membersOf(output)?.['message']) ?? {};
  if (!Array.isArray(content)) throw new Untranslatable('output.message.content', 'the response has none');
  const counted = readUsage(usage);
  return {
    id: newId(),
    model: '',
    answers: [{ parts: objectsOf(content).flatMap(readBlock), stop: readStop(stopReason) }],
    ...(counted === undefined ? {} : { usage: counted }),
  };
}

/** A block; nothing for an empty one. */
function readBlock(block: Json): AnswerPart[] {
  const { text, toolUse, reasoningContent } = block;
  if (typeof text === 'string') return [{ type: 'text', text }];
  if (!isEmpty(toolUse)) {
    const { toolUseId, name, input } = objectOf(toolUse) ?? {};
    return [
      {
        type: 'toolCall',
        id: textOf(toolUseId) ?? newId(),
        name: requiredName(name, 'output.message.content[].toolUse.name'),
        arguments: argumentsText(input) || '{}',
      },
    ];
  }
  if (!isEmpty(reasoningContent)) return [readReasoning(objectOf(reasoningContent) ?? {})];
  const other = firstMember(block);
  if (other === undefined) return [];
  throw new Untranslatable(`output.message.content[].${other}`, 'other formats have no such content');
}

function readReasoning({ reasoningText, redactedContent }: Json): AnswerPart {
  const origin = 'converse';
  if (typeof redactedContent === 'string')
    return { type: 'reasoning', text: '', encrypted: redactedContent, origin };
  const { text, signature } = membersOf(reasoningText) ?? {};
  return {
    type: 'reasoning',
    text: typeof text === 'string' ? text : '',
    ...(typeof signature === 'string' && signature !== '' ? { signature } : {}),
    origin,
  };
}

const STOPS: ReadonlyMap<unknown, StopReason> = new Map([
  ['end_turn', 'stop'],
  ['tool_use', 'toolCalls'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['stop_sequence', 'stopSequence'],
  ['guardrail_intervened', 'filter'],
  ['content_filtered', 'filter'],
]);

/** Throws `Unfinished` if the model failed, such as `malformed_tool_use`. */
export function readStop(reason: unknown): StopReason {
  const stop = STOPS.get(reason);
  if (stop !== undefined) return stop;
  throw new Unfinished(`stopReason: ${JSON.stringify(reason)}`);
}

/** `inputTokens` excludes tokens read from the cache and written to it (Bedrock user guide, "Prompt caching"). */
export function readUsage(usage: unknown): ChatUsage | undefined {
  if (!isRecord(usage)) return undefined;
  const cachedInput = count(usage['cacheReadInputTokens']);
  const cacheWrite = count(usage['cacheWriteInputTokens']);
  // Amazon Bedrock API reference, "CacheDetail".
  const cacheWrite1h = elementsOf(usage['cacheDetails'])
    .map((each) => membersOf(each) ?? {})
    .reduce((sum, { ttl, inputTokens }) => sum + (ttl === '1h' ? count(inputTokens) : 0), 0);
  return {
    input: count(usage['inputTokens']) + cachedInput + cacheWrite,
    output: count(usage['outputTokens']),
    ...(cachedInput === 0 ? {} : { cachedInput }),
    ...(cacheWrite === 0 ? {} : { cacheWrite }),
    ...(cacheWrite1h === 0 ? {} : { cacheWrite1h }),
  };
}

const count = (value: unknown): number => tokenCount(value) ?? 0;

/** The message for a prompt that is too long. */
const TOO_LONG = /^Input is too long/i;

/** `{"message": …}`; some services write `Message`. The name of the error is in a header. */
export function readError(body: unknown, status: number): ChatError {
  const { Message } = membersOf(body) ?? {};
  const error = readProviderError(typeof Message === 'string' ? { message: Message } : body, status);
  return TOO_LONG.test(error.message) ? { ...error, code: CONTEXT_EXCEEDED } : error;
}
