import { type Members, membersOf } from '../json-members.ts';
import { inputUsage, parseUsage } from '../usage.ts';
import { choicesApi } from './chat-completions/choices.ts';
import { defineFormat } from './format.ts';
import { openAiApi } from './openai-api.ts';

export const textCompletions = defineFormat({
  ...openAiApi,
  ...choicesApi,
  key: 'textCompletions',
  paths: ['/completions'],
  routeType: 'Completions',
  operation: 'text_completion',
  isCacheable: () => true,
  promptFields: [
    { name: 'prompt', isPrompt: true },
    { name: 'suffix', isUncounted: true },
  ],
  numbers: { tokens: ['max_tokens'], answers: ['n', 'best_of'] },
});

export const rerank = defineFormat({
  ...openAiApi,
  key: 'rerank',
  paths: ['/rerank', '/v2/rerank'],
  routeType: 'Rerank',
  isRoutable: true,
  operation: 'other',
  repeatedFields: new Set(['results', 'data']),
  // Clients of Cohere and Jina read `message` and `detail`.
  isError: () => true,
  promptFields: [{ name: 'query' }, { name: 'documents' }],
  hasNoText: true,
  hasOnlyData: true,
  // Jina, Voyage and vLLM report `usage`; Cohere `meta.tokens` or `meta.billed_units`. Search units are not tokens.
  report(value) {
    const meta = membersOf(value['meta']);
    return { model: value['model'], usage: value['usage'] ?? meta?.['tokens'] ?? meta?.['billed_units'] };
  },
  usage: inputUsage,
  shape: {
    api: 'the Rerank API',
    has: isRanking,
    isAnswer: isRanking,
    // Text Embeddings Inference, and llama.cpp for requests in its form (`texts`).
    isList: (items) =>
      items.length > 0 && items.every((item) => typeof membersOf(item)?.['score'] === 'number'),
  },
});

export const moderations = defineFormat({
  ...openAiApi,
  key: 'moderations',
  paths: ['/moderations'],
  operation: 'other',
  promptFields: [{ name: 'input', isConversation: true, isPrompt: true }],
  hasNoText: true,
  hasOnlyData: true,
  shape: {
    api: 'the Moderations API',
    has: ({ results }) => Array.isArray(results),
    isAnswer: ({ results }) => Array.isArray(results),
  },
  // OpenAI's API reference, "Create moderation": `model` is optional, and this is its default.
  defaultModel: 'omni-moderation-latest',
});

/** Text to speech. Only streams (`stream_format: sse`) report usage; the audio itself is the whole response otherwise. */
export const speech = defineFormat({
  ...openAiApi,
  key: 'speech',
  paths: ['/audio/speech'],
  operation: 'other',
  promptFields: [
    { name: 'instructions', isSystem: true },
    { name: 'input', isConversation: true, isPrompt: true },
  ],
  hasNoText: true,
  // Every output token is audio, which catalogs may price differently.
  usage(report) {
    const usage = parseUsage(report);
    return usage === undefined ? undefined : { ...usage, outputAudio: usage.output };
  },
});

/** Speech to text. Models billed by the minute report `{"type": "duration", "seconds"}`, which has no tokens. */
export const transcriptions = defineFormat({
  ...openAiApi,
  key: 'transcriptions',
  paths: [],
  formPaths: ['/audio/transcriptions', '/audio/translations'],
  operation: 'other',
  promptFields: [{ name: 'prompt', isPrompt: true }],
  deltaMark: Buffer.from('.delta"'),
  shape: {
    api: 'the Transcriptions API',
    has: isTranscript,
    isAnswer: isTranscript,
    // `response_format`: `text`, `srt`, `vtt`.
    mayBeText: true,
  },
  // A stream repeats the whole text at its end, in `text`.
  output: ({ type, text, delta }) => delta ?? (type === undefined ? text : undefined),
});

export const images = defineFormat({
  ...openAiApi,
  key: 'images',
  paths: ['/images/generations'],
  formPaths: ['/images/edits', '/images/variations'],
  operation: 'other',
  promptFields: [{ name: 'prompt', isPrompt: true }],
  numbers: { tokens: [], answers: ['n'] },
  hasNoText: true,
  shape: {
    api: 'the Images API',
    has: isImages,
    isAnswer: isImages,
  },
});

/** `results` of Cohere, Jina, Together and vLLM; `data` of Voyage, Mixedbread and Pinecone. */
function isRanking({ results, data }: Members): boolean {
  return Array.isArray(results) || Array.isArray(data);
}

/** A response, or an event (OpenAI's API reference, "Streaming events" of audio and images). */
function isTranscript({ text, type }: Members): boolean {
  return typeof text === 'string' || (typeof type === 'string' && type.startsWith('transcript.'));
}

function isImages({ data, type }: Members): boolean {
  return Array.isArray(data) || (typeof type === 'string' && /^image_(?:generation|edit)\./.test(type));
}

/** Sessions of OpenAI's Realtime API over WebSocket, which are not calls: `llm/realtime/` opens and relays them. */
export const realtime = defineFormat({
  ...openAiApi,
  key: 'realtime',
  paths: [],
  routeType: 'Realtime',
  isRoutable: true,
  operation: 'other',
  hasNoText: true,
});
