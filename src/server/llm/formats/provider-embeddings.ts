import { Untranslatable } from '../chat/chat-format.ts';
import { defined } from '../chat/defined.ts';
import type { EmbeddingTask, ProviderEmbeddingFormat } from '../chat/embedding-format.ts';
import {
  listOf,
  objectsOf,
  refuseTasks,
  refuseTitle,
  untranslatable,
  vectorOf,
} from '../chat/provider-vectors.ts';
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

/** Titan Text Embeddings on Bedrock (user guide, "Amazon Titan Embeddings Text"). A call has one text. */
export const titanEmbeddings: ProviderEmbeddingFormat = {
  key: 'titanEmbeddings',
  path: ({ model }) => `/model/${encodeURIComponent(model)}/invoke`,
  writeRequest(request) {
    refuseTasks(request);
    const [text, second] = request.texts;
    if (second !== undefined) throw new Untranslatable(second.path, 'Titan takes one text per call');
    return defined({ inputText: text?.text, dimensions: request.dimensions });
  },
  readResponse({ embedding, inputTextTokenCount }) {
    const input = tokenCount(inputTextTokenCount);
    return defined({
      vectors: [vectorOf(embedding, 'embedding')],
      usage: input === undefined ? undefined : { input, output: 0 },
    });
  },
};

/** `input_type` by task. Cohere has no other types for texts. */
const INPUT_TYPES: Partial<Record<EmbeddingTask, string>> = {
  RETRIEVAL_QUERY: 'search_query',
  RETRIEVAL_DOCUMENT: 'search_document',
  CLASSIFICATION: 'classification',
  CLUSTERING: 'clustering',
};

/** Cohere requires a type, and OpenAI's clients name none: documents are the larger part of what is embedded. */
const DEFAULT_TYPE = 'search_document';

/** Cohere Embed 3 and 4 on Bedrock (user guide, "Cohere Embed models"). */
export const cohereEmbeddings: ProviderEmbeddingFormat = {
  key: 'cohereEmbeddings',
  path: ({ model }) => `/model/${encodeURIComponent(model)}/invoke`,
  writeRequest({ texts, dimensions }) {
    const types = texts.map((text) => {
      refuseTitle(text);
      if (text.task === undefined) return DEFAULT_TYPE;
      return INPUT_TYPES[text.task] ?? refuseTask(text.task, untranslatable(text, 'taskType', ''));
    });
    const other = texts.find((_, index) => types[index] !== types[0]);
    if (other !== undefined) throw untranslatable(other, 'taskType', 'it must be the same in all requests');
    return defined({
      texts: texts.map(({ text }) => text),
      input_type: types[0],
      embedding_types: ['float'],
      output_dimension: dimensions,
    });
  },
  readResponse({ embeddings }, headers) {
    // By type, because `embedding_types` is set; without it, a list.
    const list = listOf(membersOf(embeddings)?.['float'] ?? embeddings, 'embeddings.float');
    // The body has no count.
    const input = tokenCount(Number(headers.get('x-amzn-bedrock-input-token-count') ?? Number.NaN));
    return defined({
      vectors: list.map((vector, index) => vectorOf(vector, `embeddings.float[${index}]`)),
      usage: input === undefined ? undefined : { input, output: 0 },
    });
  },
};

function refuseTask(task: EmbeddingTask, { what }: Untranslatable): never {
  throw new Untranslatable(`${what}: ${JSON.stringify(task)}`, 'Cohere has no such type');
}
