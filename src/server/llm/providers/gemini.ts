import { nameModelOfBatch } from '../formats/gemini-embeddings/index.ts';
import { JsonBody } from '../request/json-body.ts';
import { defineProvider, type OutgoingRequest, type PathInput } from './provider.ts';

/** Calls of the OpenAI-compatible part of the API, which has a path and a credential of its own. */
const COMPATIBLE = ['completions', 'embeddings', 'images'] as const;

const compatiblePath = ({ basePath, path }: PathInput): string =>
  `${basePath}/openai${path.slice(basePath.length)}`;

/**
 * The Gemini API of Google. Chat completions go to its OpenAI-compatible part, which knows more of Gemini than a
 * translation of our own.
 */
export const gemini = defineProvider({
  key: 'gemini',
  aliases: [],
  telemetryName: 'gcp.gemini',
  baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
  formats: [
    { type: 'generateContent' },
    { type: 'geminiCountTokens' },
    { type: 'embedContent' },
    { type: 'batchEmbedContents' },
    ...COMPATIBLE.map((type) => ({ type, path: compatiblePath })),
  ],
  // Gemini API, "OpenAI compatibility".
  keyHeader: (apiKey, format) =>
    COMPATIBLE.some((type) => type === format)
      ? ['authorization', `Bearer ${apiKey}`]
      : ['x-goog-api-key', apiKey],
  connect: () => ({
    prepare: (request) => (request.format === 'batchEmbedContents' ? nameModel(request) : undefined),
  }),
});

/** Each request of a batch has to name the model (Gemini API, "batchEmbedContents"), which clients of other APIs do not. */
async function nameModel(request: OutgoingRequest): Promise<void> {
  const body = await JsonBody.parse(Buffer.from(request.body ?? ''));
  nameModelOfBatch(body, request.model ?? '', true);
  request.body = body.encode();
}
