import type { Answer, AnswerPart, ChatResponse, ChatUsage, StopReason } from '../../chat/chat.ts';
import type { Json } from '../../chat/chat-format.ts';
import { defined } from '../../chat/defined.ts';
import { JoinedReasoning } from '../../chat/joined-reasoning.ts';
import { isText, joinTexts } from '../../chat/turns.ts';

/** Writes a complete response. */
export function writeResponse({ id, model, created, answers, usage, serviceTier }: ChatResponse): Json {
  return defined({
    id,
    object: 'chat.completion',
    created: created ?? Math.floor(Date.now() / 1000),
    model,
    choices: answers.map(writeAnswer),
    usage: usage === undefined ? undefined : writeUsage(usage),
    service_tier: serviceTier,
  });
}

function writeAnswer({ parts, stop }: Answer, index: number): Json {
  return {
    index,
    message: writeMessage(parts),
    logprobs: null,
    finish_reason: finishReason(stop, parts),
  };
}

function writeMessage(parts: readonly AnswerPart[]): Json {
  const text = joinTexts(parts.filter(isText));
  const refusal = joinTexts(parts.flatMap((part) => (part.type === 'refusal' ? [part.text] : [])));
  const reasoning = joinReasoning(parts);
  const calls = parts.flatMap((part) => (part.type === 'toolCall' ? [writeToolCall(part)] : []));
  return defined({
    role: 'assistant',
    reasoning_content: reasoning.text === '' ? undefined : reasoning.text,
    reasoning_signature: reasoning.state,
    content: text === '' && (calls.length > 0 || refusal !== '') ? null : text,
    refusal: refusal === '' ? null : refusal,
    tool_calls: calls.length === 0 ? undefined : calls,
  });
}

function joinReasoning(parts: readonly AnswerPart[]): { text: string; state: string | undefined } {
  const joined = new JoinedReasoning();
  let text = '';
  for (const part of parts) {
    if (part.type !== 'reasoning') continue;
    const piece = joined.begin();
    text += joined.add(piece, part.text);
    joined.end(piece, part);
  }
  return { text, state: joined.state() };
}

/** A call as in the messages of requests and responses. */
function writeToolCall({
  id,
  name,
  arguments: text,
  isCustom,
}: Extract<AnswerPart, { type: 'toolCall' }>): Json {
  return isCustom === true
    ? { id, type: 'custom', custom: { name, input: text } }
    : { id, type: 'function', function: { name, arguments: text } };
}

/** `finish_reason`. A paused answer is incomplete, for which there is only `length`. */
export function finishReason(
  stop: StopReason,
  parts: readonly Pick<AnswerPart, 'type'>[],
): 'stop' | 'length' | 'tool_calls' | 'content_filter' {
  switch (stop) {
    case 'toolCalls':
      return 'tool_calls';
    case 'length':
    case 'pause':
      return 'length';
    case 'filter':
      return 'content_filter';
    case 'refusal':
      // OpenAI's own refusals end with `stop` and have a text.
      return parts.some(({ type }) => type === 'refusal') ? 'stop' : 'content_filter';
    default:
      return 'stop';
  }
}

export function writeUsage(usage: ChatUsage): Json {
  const input = defined({
    cached_tokens: usage.cachedInput,
    cache_write_tokens: usage.cacheWrite,
    audio_tokens: usage.inputAudio,
  });
  const output = defined({ reasoning_tokens: usage.reasoning, audio_tokens: usage.outputAudio });
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    ...(Object.keys(input).length === 0 ? {} : { prompt_tokens_details: input }),
    ...(Object.keys(output).length === 0 ? {} : { completion_tokens_details: output }),
  };
}
