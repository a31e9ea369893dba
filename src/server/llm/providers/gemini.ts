import { defineProvider, type PathInput } from './provider.ts';

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
    ...COMPATIBLE.map((type) => ({ type, path: compatiblePath })),
  ],
  keyHeader: (apiKey) => ['x-goog-api-key', apiKey],
  connect: ({ apiKey }) => ({
    prepare({ format, headers }) {
      if (apiKey === undefined || !COMPATIBLE.some((type) => type === format)) return;
      // Gemini API, "OpenAI compatibility".
      headers.delete('x-goog-api-key');
      headers.set('authorization', `Bearer ${apiKey}`);
    },
  }),
});
