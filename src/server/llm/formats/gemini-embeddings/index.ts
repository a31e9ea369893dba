import { elementsOf, isRecord, membersOf } from '../../../../core/foreign.ts';
import { tokenCount } from '../../usage.ts';
import { defineFormat, type Fields, type WireFormat } from '../format.ts';
import { geminiApi } from '../gemini-api.ts';
import { contentPath } from '../generate-content/content-path.ts';
import { batchEmbedContents as batch, embedContent as one } from './embedding.ts';

/** What embeddings of one and of several texts have in common. */
const embeddings = {
  ...geminiApi,
  paths: [],
  operation: 'embeddings',
  isCacheable: () => true,
  hasNoText: true,
  hasOnlyData: true,
  report: ({ usageMetadata }) => ({ usage: usageMetadata }),
  usage: ({ promptTokenCount }) => {
    const input = tokenCount(promptTokenCount);
    return input === undefined ? undefined : { input, output: 0 };
  },
  output: () => undefined,
} satisfies Omit<WireFormat, 'key'>;

/** `embedContent` of the Gemini API. */
export const embedContent = defineFormat({
  ...embeddings,
  key: 'embedContent',
  methods: { embedContent: { stream: false } },
  embedsFrom: one,
  shape: {
    api: 'embedContent',
    has: ({ embedding }) => isRecord(embedding),
    isAnswer: ({ embedding }) => isRecord(embedding),
  },
  promptFields: [
    { name: 'content', isContent: true, isPrompt: true, contentPath },
    { name: 'title', isUncounted: true },
  ],
});

/** `batchEmbedContents` of the Gemini API. */
export const batchEmbedContents = defineFormat({
  ...embeddings,
  key: 'batchEmbedContents',
  methods: { batchEmbedContents: { stream: false } },
  embedsFrom: batch,
  embedsTo: batch,
  shape: {
    api: 'batchEmbedContents',
    has: ({ embeddings: list }) => Array.isArray(list),
    isAnswer: ({ embeddings: list }) => Array.isArray(list),
  },
  promptFields: [{ name: 'requests', isPrompt: true, contentPath }],
  modelInItems: { field: 'requests', write: nameModelOfBatch },
});

/**
 * Writes the model of the call into each request of a batch of embeddings that names one (Gemini API, "batchEmbedContents": it
 * must be that of the path), or into every request.
 */
export function nameModelOfBatch(body: Pick<Fields, 'get' | 'set'>, name: string, isRequired = false): void {
  const requests = elementsOf(body.get('requests'));
  const model = `models/${name.replace(/^models\//, '')}`;
  const isOther = (each: unknown): boolean =>
    (membersOf(each)['model'] ?? (isRequired ? undefined : model)) !== model;
  if (requests.some(isOther))
    body.set(
      'requests',
      requests.map((each) => (isOther(each) ? { ...membersOf(each), model } : each)),
    );
}
