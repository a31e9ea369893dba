import { elementsOf, isRecord } from '../../../../core/foreign.ts';
import type { MemberNames } from '../../chat/chat-format.ts';
import { isBlank } from '../../chat/event-data.ts';
import { membersOf } from '../../json-members.ts';
import { tokenCount } from '../../usage.ts';
import { OF_COMPLETIONS } from '../default-fields.ts';
import { defineFormat } from '../format.ts';
import { geminiApi } from '../gemini-api.ts';
import { modelResource } from '../model-resource.ts';
import { addMessages } from './added-messages.ts';
import { contentPath } from './content-path.ts';
import { readError, writeError } from './error.ts';
import { generateContentEvents } from './event-texts.ts';
import { eventReader, eventWriter } from './events.ts';
import { completion, streamedOutput } from './output.ts';
import { readRequest } from './read-request.ts';
import { readResponse, writeResponse } from './response.ts';
import { readUsage } from './usage.ts';
import { writeRequest } from './write-request.ts';

const memberNames: MemberNames = {
  turns: 'contents',
  system: 'systemInstruction',
  toolChoice: 'toolConfig.functionCallingConfig',
  maxTokens: 'generationConfig.maxOutputTokens',
  temperature: 'generationConfig.temperature',
  topP: 'generationConfig.topP',
  topK: 'generationConfig.topK',
  stop: 'generationConfig.stopSequences',
  presencePenalty: 'generationConfig.presencePenalty',
  frequencyPenalty: 'generationConfig.frequencyPenalty',
  seed: 'generationConfig.seed',
  count: 'generationConfig.candidateCount',
  output: 'generationConfig.responseMimeType',
  reasoning: 'generationConfig.thinkingConfig',
  metadata: 'labels',
};

/** `generateContent` and `streamGenerateContent` of the Gemini API. Their paths name the model. */
export const generateContent = defineFormat({
  ...geminiApi,
  key: 'generateContent',
  paths: [],
  methods: { generateContent: { stream: false }, streamGenerateContent: { stream: true } },
  isSpokenBy: ({ path, headers }) => PATH.test(path) || HEADERS.some((name) => headers.has(name)),
  routeType: 'GenerateContent',
  operation: 'chat',
  isCacheable: () => true,
  defaultFields: {
    without: new Set([
      ...OF_COMPLETIONS,
      ...['user', 'temperature', 'top_p', 'top_k', 'max_tokens', 'thinking', 'store'],
    ]),
  },
  chat: {
    key: 'generateContent',
    path: ({ model, stream }) =>
      `/${modelResource(model)}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    memberNames,
    readRequest,
    writeRequest,
    readResponse,
    readUsage: (body) => readUsage(body['usageMetadata']),
    writeResponse,
    readError,
    writeError,
    eventReader,
    eventWriter,
  },
  promptFields: [
    { name: 'contents', isConversation: true, isPrompt: true, contentPath },
    { name: 'systemInstruction', isSystem: true, isContent: true, contentPath },
    { name: 'system_instruction', isSystem: true, isContent: true, contentPath },
  ],
  definitions: [
    'tools',
    'toolChoice',
    'toolConfig',
    'tool_config',
    'responseSchema',
    'response_schema',
    'responseJsonSchema',
    'response_json_schema',
  ],
  // Both spellings are accepted by Google (protobuf's JSON mapping).
  numbers: {
    inside: ['generationConfig', 'generation_config'],
    tokens: ['maxOutputTokens', 'max_output_tokens'],
    answers: ['candidateCount', 'candidate_count'],
  },
  addMessages,
  usageMark: Buffer.from('"usageMetadata"'),
  report: ({ modelVersion, usageMetadata }) => ({ model: modelVersion, usage: usageMetadata }),
  usage: (report) => (tokenCount(report['promptTokenCount']) === undefined ? undefined : readUsage(report)),
  output: ({ candidates }) =>
    Array.isArray(candidates)
      ? elementsOf(candidates).map((each) => membersOf(each)?.['content'])
      : undefined,
  outputFields: [
    {
      name: 'candidates',
      areAlternatives: true,
      // Texts and thoughts are parts of the same list.
      contentPath: ({ text }) => (typeof text === 'string' ? ['text'] : undefined),
    },
  ],
  eventTexts: generateContentEvents,
  completion,
  streamedOutput,
  shape: {
    api: 'the Gemini API',
    has: ({ candidates }) => Array.isArray(candidates),
    // A prompt that was blocked has no candidates, and neither have some events.
    isAnswer: ({ candidates, promptFeedback, usageMetadata }) =>
      Array.isArray(candidates) || isRecord(promptFeedback) || isRecord(usageMetadata),
    isLast: ({ candidates, promptFeedback }) =>
      !isBlank(membersOf(promptFeedback)?.['blockReason']) ||
      elementsOf(candidates).some((each) => !isBlank(membersOf(each)?.['finishReason'])),
  },
  // Gemini API, "Models". Which of these calls a model has is known to its provider only, as is its version.
  modelList: {
    entry: (name) => ({
      name: `models/${name}`,
      version: '',
      displayName: name,
      supportedGenerationMethods: ['generateContent', 'countTokens', 'embedContent'],
    }),
    page: (models) => ({ models }),
  },
});

/** The preview versions, which no other API has, and methods of models: `/v1/models/x:batchGenerateContent`. */
const PATH = /^\/v1(?:alpha|beta)\d*(?:\/|$)|^\/v1\/(?:models|tunedModels)\/.+:[A-Za-z]+$/;
/** Sent by Google's clients with every request. */
const HEADERS = ['x-goog-api-client', 'x-goog-api-key'];
