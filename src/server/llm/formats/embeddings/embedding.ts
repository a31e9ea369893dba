import { elementsOf } from '../../../../core/foreign.ts';
import { Untranslatable } from '../../chat/chat-format.ts';
import { defined } from '../../chat/defined.ts';
import type {
  EmbeddedText,
  EmbeddingFormat,
  EmbeddingRequest,
  ProviderEmbeddingFormat,
} from '../../chat/embedding-format.ts';
import { readMembers } from '../../chat/member-reader.ts';
import { objectsOf, refuseTasks, vectorOf } from '../../chat/provider-vectors.ts';
import { membersOf } from '../../json-members.ts';
import { inputUsage } from '../../usage.ts';
import { writeOpenAiError } from '../openai-error.ts';
import { packedVector } from './packed-vector.ts';

/** `POST /v1/embeddings` of the OpenAI API. https://platform.openai.com/docs/api-reference/embeddings */
export const embeddings: EmbeddingFormat & ProviderEmbeddingFormat = {
  key: 'embeddings',
  path: () => '/embeddings',
  readRequest: (body) =>
    readMembers(body, '', (members) => {
      members.skip({ user: 'It identifies the user of the application, for abuse detection.' });
      return defined({
        model: members.requiredText('model'),
        texts: textsOf(members.required('input', members.value('input'))),
        dimensions: members.number('dimensions'),
        isPacked: members.choice('encoding_format', ['float', 'base64']) === 'base64',
      });
    }),
  writeRequest(request) {
    refuseTasks(request);
    const { model, texts, dimensions } = request;
    return defined({ model, input: texts.map(({ text }) => text), dimensions, encoding_format: 'float' });
  },
  readResponse({ data, model, usage }) {
    const vectors = objectsOf(data, 'data').map(({ embedding }, index) =>
      vectorOf(embedding, `data[${index}].embedding`),
    );
    const counts = membersOf(usage);
    return defined({
      vectors,
      model: typeof model === 'string' ? model : undefined,
      usage: counts === undefined ? undefined : inputUsage(counts),
    });
  },
  writeResponse({ vectors, model, usage }, request) {
    const data = vectors.map((vector, index) => ({
      object: 'embedding',
      index,
      embedding: request.isPacked ? packedVector(vector) : vector,
    }));
    const tokens = usage?.input ?? 0;
    return {
      object: 'list',
      data,
      model: model ?? request.model,
      usage: { prompt_tokens: tokens, total_tokens: tokens },
    };
  },
  writeError: writeOpenAiError,
};

function textsOf(input: unknown): EmbeddingRequest['texts'] {
  const list = Array.isArray(input) ? elementsOf(input) : [input];
  return list.map((text, index): EmbeddedText => {
    const path = Array.isArray(input) ? `input[${index}]` : 'input';
    if (typeof text !== 'string')
      throw new Untranslatable(path, 'expected a text: other providers have other tokens');
    return { text, path };
  });
}
