import { textReply } from '../../../kernel/request/error-response.ts';
import type { Reply, RequestContext } from '../../../kernel/request/request-context.ts';
import type { FormatKey } from '../../formats/index.ts';
import { formatOf } from '../../formats/index.ts';
import type { LlmCall } from '../../llm-call.ts';
import { defineProvider } from '../provider.ts';
import { chatCompletion } from './chat-completions.ts';
import { geminiCountTokens, generatedContent } from './generate-content.ts';
import { message } from './messages.ts';
import {
  embeddedContent,
  embeddedContents,
  embeddings,
  images,
  moderation,
  rerank,
  speech,
  textCompletion,
  tokenCount,
  transcription,
} from './other-calls.ts';
import { EchoConversation } from './realtime.ts';
import { InvalidRequest } from './reply.ts';
import { response } from './responses.ts';
import type { Body } from './words.ts';

/** Answers one call. Throws `InvalidRequest`. */
type Answer = (body: Body, streaming: boolean) => Reply;

/** Calls of other formats are refused. Realtime sessions are not calls: `openSession` answers them. */
const ANSWERS: Partial<Readonly<Record<FormatKey, Answer>>> = {
  completions: chatCompletion,
  textCompletions: textCompletion,
  responses: response,
  messages: message,
  anthropicTokenCount: tokenCount,
  generateContent: generatedContent,
  geminiCountTokens,
  embedContent: embeddedContent,
  batchEmbedContents: embeddedContents,
  embeddings,
  rerank,
  moderations: moderation,
  speech,
  transcriptions: transcription,
  images,
};

/**
 * A built-in model for tests and demos that repeats its prompt, without a key or a network. Words count as tokens. It
 * calls the first tool if `tool_choice` forces a call. Paths of `passthrough` are a 404, as at the OpenAI API.
 */
export const echo = defineProvider({
  key: 'echo',
  aliases: [],
  telemetryName: 'echo',
  baseUrl: undefined,
  formats: [],
  answer,
  openSession(model) {
    const conversation = new EchoConversation(model);
    const texts = (events: readonly object[]): string[] => events.map((event) => JSON.stringify(event));
    return {
      start: () => texts(conversation.start()),
      answer: (message) => texts(conversation.answer(message)),
    };
  },
});

function answer(ctx: RequestContext, call: LlmCall, body: Body): Reply {
  const { format, streaming, requestModel, providerModel: model = requestModel } = call;
  const answerTo = format && ANSWERS[format];
  if (answerTo === undefined)
    return refusal(format, 404, 'unknown_url', `the echo model does not support ${ctx.method} ${ctx.path}`);
  try {
    // Some formats have the model in the path.
    return answerTo({ model, ...body }, streaming);
  } catch (error) {
    // Returned, not thrown: an invalid request must not count as a failure of the model.
    if (error instanceof InvalidRequest) return refusal(format, 400, error.code, error.message);
    throw error;
  }
}

function refusal(format: FormatKey | undefined, status: number, code: string, message: string): Reply {
  const error = { status, type: 'invalid_request_error', code, message };
  return textReply(status, JSON.stringify(formatOf(format).errorBody(error)), 'application/json');
}
