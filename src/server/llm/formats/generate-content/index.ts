import { membersOf } from '../../json-members.ts';
import { tokenCount } from '../../usage.ts';
import type { ClientError, Format } from '../format.ts';
import { googleStatus } from './error.ts';
import { readUsage } from './usage.ts';

/** What the formats of the Gemini API have in common. */
const geminiApi: Pick<Format, 'wrapsRejections' | 'errorBody' | 'errorEvent'> = {
  wrapsRejections: true,
  errorBody: googleError,
  errorEvent: (error) => `data: ${JSON.stringify(googleError(error))}\n\n`,
};

/** `generateContent` and `streamGenerateContent` of the Gemini API. Their paths name the model. */
export const generateContent: Format = {
  ...geminiApi,
  key: 'generateContent',
  paths: [],
  methods: { generateContent: { stream: false }, streamGenerateContent: { stream: true } },
  operation: 'chat',
  usageMark: Buffer.from('"usageMetadata"'),
  report: ({ modelVersion, usageMetadata }) => ({ model: modelVersion, usage: usageMetadata }),
  usage: (report) => (report['promptTokenCount'] === undefined ? undefined : readUsage(report)),
  output: ({ candidates }) =>
    Array.isArray(candidates)
      ? (candidates as unknown[]).map((each) => membersOf(each)?.['content'])
      : undefined,
};

/** `countTokens` of the Gemini API, which Google does not charge for. */
export const geminiCountTokens: Format = {
  ...geminiApi,
  key: 'geminiCountTokens',
  paths: [],
  methods: { countTokens: { stream: false } },
  operation: 'other',
  hasNoText: true,
  isFree: true,
  // The tokens in its response are the result, not usage.
  report: () => ({}),
  usage: () => undefined,
  output: () => undefined,
};

/** What embeddings of one and of several texts have in common. */
const embeddings = {
  ...geminiApi,
  paths: [],
  operation: 'embeddings',
  hasNoText: true,
  report: ({ usageMetadata }) => ({ usage: usageMetadata }),
  usage: ({ promptTokenCount }) => {
    const input = tokenCount(promptTokenCount);
    return input === undefined ? undefined : { input, output: 0 };
  },
  output: () => undefined,
} satisfies Omit<Format, 'key'>;

/** `embedContent` of the Gemini API. */
export const embedContent: Format = {
  ...embeddings,
  key: 'embedContent',
  methods: { embedContent: { stream: false } },
};

/** `batchEmbedContents` of the Gemini API. */
export const batchEmbedContents: Format = {
  ...embeddings,
  key: 'batchEmbedContents',
  methods: { batchEmbedContents: { stream: false } },
};

function googleError({ status, message }: ClientError): object {
  return { error: { code: status, message, status: googleStatus(status) } };
}
