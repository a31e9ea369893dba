import type { ProtocolFields } from '../kernel/request/field-rules.ts';
import type { ClientApi } from '../kernel/request/request-context.ts';
import { errorBody } from './call/client-error.ts';
import { isRealtime } from './realtime/realtime.ts';
import { endpointAt, isModelList, passthroughAt } from './request/endpoints.ts';

/** Every error on an LLM route has the format of the client's call, including errors of policies. */
export const llmApi: ClientApi = {
  protocol: 'llm',
  // `%2F` in the id of `/v1/models/{id}`.
  hasEncodedSlashes: true,
  // Of Anthropic's, Google's and Azure's clients.
  keyHeaders: ['x-api-key', 'x-goog-api-key', 'api-key'],
  errorBody,
  // Listing models, counting tokens and reading files must work for a client that has exhausted its token limit.
  usesTokens: (ctx) =>
    isRealtime(ctx) ||
    (!isModelList(ctx) &&
      (endpointAt(ctx.method, ctx.path) ?? passthroughAt(ctx.method, ctx.path)).isFree !== true),
};

/** Fields that choose the version of an API, its features and the account that pays. */
export const llmHeaderFields: ProtocolFields = { endToEnd: ['anthropic-', 'openai-'] };
