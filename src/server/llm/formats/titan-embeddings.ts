import { Untranslatable } from '../chat/chat-format.ts';
import { defined } from '../chat/defined.ts';
import type { ProviderEmbeddingFormat } from '../chat/embedding-format.ts';
import { refuseTasks, vectorOf } from '../chat/provider-vectors.ts';
import { tokenCount } from '../usage.ts';

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
