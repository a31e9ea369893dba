import { type CallTarget, type Json, Untranslatable } from '../../chat/chat-format.ts';
import { defined } from '../../chat/defined.ts';
import {
  type EmbeddedText,
  type EmbeddingFormat,
  type EmbeddingResponse,
  type ProviderEmbeddingFormat,
  TASKS,
} from '../../chat/embedding-format.ts';
import { type MemberReader, readMembers } from '../../chat/member-reader.ts';
import { objectsOf, vectorOf } from '../../chat/provider-vectors.ts';
import { membersOf } from '../../json-members.ts';
import { tokenCount } from '../../usage.ts';
import { canonicalNames } from '../generate-content/canonical-names.ts';
import { writeError } from '../generate-content/error.ts';

// Gemini API, "Embeddings": https://ai.google.dev/api/embeddings

/** `embedContent`: one text. */
export const embedContent: EmbeddingFormat = {
  key: 'embedContent',
  readRequest: (body, { model }) =>
    readMembers(canonicalNames(body), '', (members) => {
      const [text, dimensions] = readOne(members);
      return defined({ model, texts: [text], dimensions });
    }),
  writeResponse: (response) => ({
    embedding: { values: response.vectors[0] },
    ...usageMetadata(response),
  }),
  writeError,
};

/** `batchEmbedContents`: several texts. */
export const batchEmbedContents: EmbeddingFormat & ProviderEmbeddingFormat = {
  key: 'batchEmbedContents',
  path: ({ model }) => `/models/${encodeURIComponent(nameOf(model))}:batchEmbedContents`,
  readRequest: (body, { model }) =>
    readMembers(canonicalNames(body), '', (members) => {
      const requests = members.requiredObjects('requests', readOne);
      const dimensions = requests[0]?.[1];
      const other = requests.find(([, each]) => each !== dimensions);
      if (other !== undefined)
        throw new Untranslatable(
          other[0].path.replace(/content$/, 'outputDimensionality'),
          'it must be the same in all requests',
        );
      return defined({ model, texts: requests.map(([text]) => text), dimensions });
    }),
  writeRequest: ({ model, texts, dimensions }) => ({
    requests: texts.map(({ text, task, title }) =>
      defined({
        model: `models/${nameOf(model)}`,
        content: { parts: [{ text }] },
        taskType: task,
        title,
        outputDimensionality: dimensions,
      }),
    ),
  }),
  readResponse(body) {
    const vectors = objectsOf(body['embeddings'], 'embeddings').map(({ values }, index) =>
      vectorOf(values, `embeddings[${index}].values`),
    );
    const input = tokenCount(membersOf(body['usageMetadata'])?.['promptTokenCount']);
    return defined({ vectors, usage: input === undefined ? undefined : { input, output: 0 } });
  },
  writeResponse: (response) => ({
    embeddings: response.vectors.map((values) => ({ values })),
    ...usageMetadata(response),
  }),
  writeError,
};

const nameOf = (model: CallTarget['model']): string => model.replace(/^models\//, '');

/** One text, and the length of its vector. */
function readOne(members: MemberReader): [text: EmbeddedText, dimensions: number | undefined] {
  // Checked before: it is the model of the path.
  members.value('model');
  const text = members.requiredObject('content', (content) => {
    content.skip({ role: 'Contents of embeddings have no author.' });
    const [first, second] = content.requiredObjects('parts', (part) => part.requiredText('text'));
    // The API does not say how it combines several.
    if (second !== undefined)
      throw new Untranslatable(`${content.pathOf('parts')}[1]`, 'one text per content');
    return first ?? '';
  });
  const task = members.choice('taskType', ['TASK_TYPE_UNSPECIFIED', ...TASKS]);
  return [
    defined({
      text,
      path: members.pathOf('content'),
      task: task === 'TASK_TYPE_UNSPECIFIED' ? undefined : task,
      title: members.text('title'),
    }),
    members.number('outputDimensionality'),
  ];
}

function usageMetadata({ usage }: EmbeddingResponse): Json {
  return usage === undefined ? {} : { usageMetadata: { promptTokenCount: usage.input } };
}
