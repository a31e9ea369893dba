import { defined } from '../chat/defined.ts';
import type { ProviderEmbeddingFormat } from '../chat/embedding-format.ts';
import { objectsOf, vectorOf } from '../chat/provider-vectors.ts';
import { membersOf } from '../json-members.ts';
import { tokenCount } from '../usage.ts';

/** `predict` of embedding models of Google on Vertex AI ("Text embeddings API"). */
export const predict: ProviderEmbeddingFormat = {
  key: 'predict',
  path: ({ model }) =>
    `/publishers/google/models/${encodeURIComponent(model.replace(/^google\//, ''))}:predict`,
  writeRequest: ({ texts, dimensions }) => ({
    instances: texts.map(({ text, task, title }) => defined({ content: text, task_type: task, title })),
    // Without it, a text that is too long would be cut without a word, unlike at the OpenAI API.
    parameters: defined({ autoTruncate: false, outputDimensionality: dimensions }),
  }),
  readResponse({ predictions }) {
    const found = objectsOf(predictions, 'predictions').map(({ embeddings }) => membersOf(embeddings));
    const counts = found.map((each) => tokenCount(membersOf(each?.['statistics'])?.['token_count']));
    const input = counts.reduce<number>((sum, count) => sum + (count ?? 0), 0);
    return defined({
      vectors: found.map((each, index) =>
        vectorOf(each?.['values'], `predictions[${index}].embeddings.values`),
      ),
      usage: counts.includes(undefined) ? undefined : { input, output: 0 },
    });
  },
};
