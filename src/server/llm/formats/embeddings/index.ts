import { elementsOf } from '../../../../core/foreign.ts';
import { type Members, membersOf } from '../../json-members.ts';
import { inputUsage } from '../../usage.ts';
import { defineFormat } from '../format.ts';
import { openAiApi } from '../openai-api.ts';
import { embeddings as embedding } from './embedding.ts';
import { packedVector } from './packed-vector.ts';

export const embeddings = defineFormat({
  ...openAiApi,
  key: 'embeddings',
  paths: ['/embeddings'],
  routeType: 'Embeddings',
  isRoutable: true,
  operation: 'embeddings',
  isCacheable: () => true,
  embedsFrom: embedding,
  embedsTo: embedding,
  promptFields: [{ name: 'input', isConversation: true, isPrompt: true }],
  hasNoText: true,
  hasOnlyData: true,
  shape: {
    api: 'the Embeddings API',
    has: ({ data }) => Array.isArray(data),
    isAnswer: ({ data }) => Array.isArray(data),
  },
  usage: inputUsage,
  answerAsked: (request) => (request['encoding_format'] === 'base64' ? withPackedVectors : undefined),
});

/** An answer with Base64 in place of lists of numbers: some servers ignore `encoding_format` (BerriAI/litellm#42426). */
function withPackedVectors(answer: Members): Members {
  const sent = elementsOf(answer['data']);
  const data = sent.map((item) => {
    const numbers = elementsOf(membersOf(item)?.['embedding']).filter((each) => typeof each === 'number');
    return numbers.length === 0 ? item : { ...membersOf(item), embedding: packedVector(numbers) };
  });
  return data.every((item, index) => item === sent[index]) ? answer : { ...answer, data };
}
