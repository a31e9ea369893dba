import type { FormatKey } from '../../src/server/llm/formats/index.ts';
import { DONE } from './llm-provider.ts';

// Calls of every wire format, with the same answer as a body and as a stream.

/** What a provider answers: model, text and usage, as far as the format has them. */
export interface Answered {
  readonly model: string;
  readonly text: string;
  readonly usage: Readonly<Record<string, unknown>> | undefined;
}

export interface WireFormat {
  /** May contain `{model}`; the body then has neither `model` nor `stream`. */
  readonly path: string;
  /** The path of streams, if it is another one. */
  readonly streamPath?: string;
  /** Members of a request, besides `model` and `stream`. */
  readonly request: object;
  /** The response body; undefined if its body has no usage. */
  readonly body?: (answer: Answered) => object;
  /** The stream; undefined if the format has none. */
  readonly stream?: (answer: Answered) => string;
}

const data = (events: readonly object[]): string =>
  events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');

interface NamedEvent {
  readonly type: string;
  readonly [member: string]: unknown;
}

/** A stream whose events are named by their type. */
export const named = (events: readonly NamedEvent[]): string =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');

/** A text in pieces, as models send it. */
const pieces = (text: string): string[] => text.match(/[^ ]+ ?| /gu) ?? [];

const choices = (message: object): object[] => [{ index: 0, ...message, finish_reason: 'stop' }];

/** Formats without usage, and sessions over WebSocket: they have tests of their own. */
type Elsewhere = 'anthropicTokenCount' | 'geminiCountTokens' | 'realtime';

export const WIRE: Readonly<Record<Exclude<FormatKey, Elsewhere>, WireFormat>> = {
  completions: {
    path: '/v1/chat/completions',
    request: { messages: [{ role: 'user', content: 'Hi' }] },
    body: ({ model, text, usage }) => ({
      object: 'chat.completion',
      model,
      choices: choices({ message: { role: 'assistant', content: text } }),
      usage,
    }),
    stream: ({ model, text, usage }) =>
      data([
        { model, choices: [{ index: 0, delta: { role: 'assistant', content: '' } }] },
        ...pieces(text).map((content) => ({ model, choices: [{ index: 0, delta: { content } }] })),
        { model, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
        ...(usage === undefined ? [] : [{ model, choices: [], usage }]),
      ]) + DONE,
  },
  textCompletions: {
    path: '/v1/completions',
    request: { prompt: 'Hi' },
    body: ({ model, text, usage }) => ({ model, choices: choices({ text }), usage }),
    stream: ({ model, text, usage }) =>
      data([
        ...[...pieces(text), ''].map((piece) => ({
          model,
          choices: [{ index: 0, text: piece }],
          usage: null,
        })),
        ...(usage === undefined ? [] : [{ model, choices: [], usage }]),
      ]) + DONE,
  },
  responses: {
    path: '/v1/responses',
    request: { input: 'Hi' },
    body: ({ model, text, usage }) => ({
      object: 'response',
      model,
      output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] }],
      usage,
    }),
    stream: ({ model, text, usage }) =>
      named(
        [
          { type: 'response.created', response: { model, output: [], usage: null } },
          { type: 'response.output_item.added', output_index: 0, item: { type: 'message', content: [] } },
          ...pieces(text).map((delta) => ({ type: 'response.output_text.delta', output_index: 0, delta })),
          { type: 'response.output_text.done', output_index: 0, text },
          {
            type: 'response.completed',
            response: {
              model,
              // The request is repeated: the word in it must not hide the report.
              tools: [{ type: 'function', name: 'f', parameters: { usage: null } }],
              output: [{ type: 'message', content: [{ type: 'output_text', text }] }],
              usage,
            },
          },
        ].map((event, index) => ({ ...event, sequence_number: index })),
      ),
  },
  messages: {
    path: '/v1/messages',
    request: { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 100 },
    body: ({ model, text, usage }) => ({
      type: 'message',
      role: 'assistant',
      model,
      content: [{ type: 'text', text }],
      stop_reason: 'end_turn',
      usage,
    }),
    stream({ model, text, usage = {} }) {
      const { output_tokens: output, output_tokens_details: details, ...input } = usage;
      return named([
        {
          type: 'message_start',
          // The API counts its first token there.
          message: {
            model,
            role: 'assistant',
            content: [],
            usage: { ...input, output_tokens: Math.min(1, Number(output ?? 1)) },
          },
        },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
        { type: 'ping' },
        ...pieces(text).map((piece) => ({
          type: 'content_block_delta',
          index: 0,
          delta: { type: 'text_delta', text: piece },
        })),
        { type: 'content_block_stop', index: 0 },
        {
          type: 'message_delta',
          delta: { stop_reason: 'end_turn', stop_sequence: null },
          usage: { input_tokens: null, output_tokens: output, output_tokens_details: details ?? null },
        },
        { type: 'message_stop' },
      ]);
    },
  },
  embeddings: {
    path: '/v1/embeddings',
    request: { input: 'Hi' },
    body: ({ model, usage }) => ({ object: 'list', model, data: [{ embedding: [0.5] }], usage }),
  },
  rerank: {
    path: '/v1/rerank',
    request: { query: 'Hi', documents: ['a'] },
    // `usage` or `meta`, depending on the provider.
    body: ({ model, usage }) => ({ model, results: [{ index: 0, relevance_score: 1 }], ...usage }),
  },
  moderations: {
    path: '/v1/moderations',
    request: { input: 'Hi' },
    body: ({ model, usage }) => ({ model, results: [{ flagged: false }], usage }),
  },
  speech: {
    path: '/v1/audio/speech',
    request: { input: 'Hi', voice: 'alloy', stream_format: 'sse' },
    stream: ({ usage }) =>
      data([
        { type: 'speech.audio.delta', audio: 'AAAA' },
        { type: 'speech.audio.done', usage },
      ]),
  },
  transcriptions: {
    path: '/v1/audio/transcriptions',
    request: { prompt: 'Hi' },
    body: ({ text, usage }) => ({ text, usage }),
    stream: ({ text, usage }) =>
      data([
        ...pieces(text).map((delta) => ({ type: 'transcript.text.delta', delta })),
        { type: 'transcript.text.done', text, usage },
      ]),
  },
  generateContent: {
    path: '/v1beta/models/{model}:generateContent',
    streamPath: '/v1beta/models/{model}:streamGenerateContent?alt=sse',
    request: { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
    body: ({ model, text, usage }) => ({
      candidates: [{ content: { role: 'model', parts: [{ text }] }, finishReason: 'STOP', index: 0 }],
      usageMetadata: usage,
      modelVersion: model,
    }),
    // Every event reports the tokens so far; those of the answer are known only at the end.
    stream: ({ model, text, usage }) =>
      data([
        ...pieces(text).map((piece) => ({
          candidates: [{ content: { role: 'model', parts: [{ text: piece }] }, index: 0 }],
          ...(usage === undefined
            ? {}
            : { usageMetadata: { promptTokenCount: usage['promptTokenCount'], totalTokenCount: 1 } }),
          modelVersion: model,
        })),
        {
          candidates: [{ content: { role: 'model', parts: [{ text: '' }] }, finishReason: 'STOP', index: 0 }],
          usageMetadata: usage,
          modelVersion: model,
        },
      ]),
  },
  embedContent: {
    path: '/v1beta/models/{model}:embedContent',
    request: { content: { parts: [{ text: 'Hi' }] } },
    body: ({ usage }) => ({ embedding: { values: [0.5] }, usageMetadata: usage }),
  },
  batchEmbedContents: {
    path: '/v1beta/models/{model}:batchEmbedContents',
    request: { requests: [{ content: { parts: [{ text: 'Hi' }] } }] },
    body: ({ usage }) => ({ embeddings: [{ values: [0.5] }], usageMetadata: usage }),
  },
  images: {
    path: '/v1/images/generations',
    request: { prompt: 'Hi' },
    body: ({ usage }) => ({ created: 1, data: [{ b64_json: 'AAAA' }], usage }),
    stream: ({ usage }) =>
      named([
        { type: 'image_generation.partial_image', b64_json: 'AAAA', partial_image_index: 0 },
        { type: 'image_generation.completed', b64_json: 'AAAA', usage },
      ]),
  },
};

/** The path and the body of a call of a format. */
export function callOf(
  format: keyof typeof WIRE,
  model: string,
  isStream = false,
): { readonly path: string; readonly body: string } {
  const { path, streamPath, request } = WIRE[format];
  const used = isStream ? (streamPath ?? path) : path;
  const isInPath = used.includes('{model}');
  const members = isInPath ? request : { model, ...request, ...(isStream && { stream: true }) };
  return { path: used.replace('{model}', model), body: JSON.stringify(members) };
}
