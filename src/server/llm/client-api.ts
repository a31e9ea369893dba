import type { ClientApi } from '../kernel/request-context.ts';
import { isModelList } from './endpoints.ts';
import { errorBody } from './errors.ts';

/** Clients of LLM routes expect the conventions of the OpenAI API, whoever refuses them. */
export const llmApi: ClientApi = {
  protocol: 'llm',
  // `%2F` in the id of `/v1/models/{id}`.
  hasEncodedSlashes: true,
  errorBody,
  // A client without any tokens left still finds out which models there are.
  usesTokens: (ctx) => !isModelList(ctx),
};
