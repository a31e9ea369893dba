import { membersOf } from '../json-members.ts';
import { inputUsage } from '../usage.ts';
import { defineFormat } from './format.ts';
import { openAiApi } from './openai-api.ts';

export const rerank = defineFormat({
  ...openAiApi,
  key: 'rerank',
  paths: ['/rerank', '/v2/rerank'],
  routeType: 'Rerank',
  isRoutable: true,
  operation: 'other',
  repeatedFields: new Set(['results', 'data']),
  promptFields: [{ name: 'query' }, { name: 'documents' }],
  hasNoText: true,
  hasOnlyData: true,
  // Jina, Voyage and vLLM report `usage`; Cohere `meta.tokens` or `meta.billed_units`. Search units are not tokens.
  report(value) {
    const meta = membersOf(value['meta']);
    return { model: value['model'], usage: value['usage'] ?? meta?.['tokens'] ?? meta?.['billed_units'] };
  },
  usage: inputUsage,
});
