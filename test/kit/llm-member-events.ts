import type { FormatKey } from '../../src/server/llm/formats/index.ts';
import { LOGPROB, PNG, UNKNOWN } from './llm-member-values.ts';

const chunk = (delta: object, more: object = {}): object => ({
  id: 'x',
  object: 'chat.completion.chunk',
  model: 'm',
  system_fingerprint: 'fp_1',
  choices: [{ index: 0, delta, ...more }],
});
const numbered = (type: string, more: object): object => ({
  type,
  sequence_number: 1,
  output_index: 0,
  ...more,
});

/** Events with members of all kinds. */
export const EVENTS: Partial<Record<FormatKey, readonly object[]>> = {
  completions: [
    chunk({ role: 'assistant', content: 'a' }, { logprobs: { content: [LOGPROB] } }),
    chunk({ reasoning: 'r', reasoning_details: [{ type: 'reasoning.text', text: 't', index: 0 }] }),
    chunk({
      tool_calls: [{ index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
    }),
    chunk({
      annotations: [{ type: 'url_citation', url_citation: { url: 'https://a.example/', title: 't' } }],
      images: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } }],
      ...UNKNOWN,
    }),
    {
      ...chunk({}),
      citations: ['https://a.example/'],
      search_results: [{ title: 't', snippet: 's' }],
      ...UNKNOWN,
    },
    { error: { message: 'failed', type: 'server_error', code: 'x', metadata: { raw: 'y' } } },
    { choices: [], usage: { prompt_tokens: 1, note: 'n' } },
  ],
  textCompletions: [{ choices: [{ index: 0, text: 'a', ...UNKNOWN }], ...UNKNOWN }],
  messages: [
    {
      type: 'message_start',
      message: {
        id: 'm',
        type: 'message',
        role: 'assistant',
        content: [],
        model: 'm',
        usage: { service_tier: 's' },
        ...UNKNOWN,
      },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'a', ...UNKNOWN } },
    {
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'text_delta', text: 'b', ...UNKNOWN },
      ...UNKNOWN,
    },
    {
      type: 'content_block_delta',
      index: 0,
      delta: {
        type: 'citations_delta',
        citation: { cited_text: 'c', url: 'https://a.example/', title: 't' },
      },
    },
    { type: 'content_block_stop', index: 0, ...UNKNOWN },
    {
      type: 'content_block_start',
      index: 1,
      content_block: { type: 'tool_use', id: 't', name: 'f', input: { a: 'b' } },
    },
    { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '{}' } },
    { type: 'content_block_delta', index: 2, delta: { type: 'thinking_delta', thinking: 't' } },
    { type: 'content_block_delta', index: 2, delta: { type: 'signature_delta', signature: PNG } },
    { type: 'ping', ...UNKNOWN },
    { type: 'new_event', ...UNKNOWN },
    { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: 'x' }, usage: {}, ...UNKNOWN },
    { type: 'error', error: { type: 'overloaded_error', message: 'm' }, request_id: 'r' },
    { type: 'message_stop', ...UNKNOWN },
  ],
  responses: [
    numbered('response.created', {
      response: { id: 'r', model: 'm', output: [], instructions: 'i', ...UNKNOWN },
    }),
    numbered('response.output_item.added', {
      item: { type: 'message', id: 'i', role: 'assistant', content: [], ...UNKNOWN },
    }),
    numbered('response.output_text.delta', {
      item_id: 'i',
      delta: 'a',
      logprobs: [LOGPROB],
      obfuscation: 'x',
      ...UNKNOWN,
    }),
    numbered('response.output_text.annotation.added', {
      annotation: { type: 'url_citation', url: 'https://a.example/', title: 't' },
    }),
    numbered('response.output_text.done', { text: 'b', ...UNKNOWN }),
    numbered('response.function_call_arguments.delta', { delta: '{}' }),
    numbered('response.audio.delta', { delta: PNG, ...UNKNOWN }),
    numbered('response.audio.transcript.delta', { delta: 't' }),
    numbered('response.image_generation_call.partial_image', { partial_image_b64: PNG, ...UNKNOWN }),
    numbered('response.new.delta', { delta: { stdout: 'o', ...UNKNOWN } }),
    numbered('response.new', UNKNOWN),
    { type: 'keepalive', ...UNKNOWN },
    numbered('error', { code: 'c', message: 'm', param: 'p' }),
    numbered('response.failed', { response: { error: { code: 'c', message: 'm' }, output: [], ...UNKNOWN } }),
    numbered('response.completed', {
      response: {
        output: [
          { type: 'message', content: [{ type: 'output_text', text: 'c', annotations: [] }], ...UNKNOWN },
        ],
        output_text: 'c',
      },
    }),
  ],
  generateContent: [
    {
      candidates: [{ content: { role: 'model', parts: [{ text: 'a', ...UNKNOWN }] }, index: 0 }],
      modelVersion: 'm',
      responseId: 'r',
    },
    {
      candidates: [
        {
          content: {
            parts: [
              {
                functionCall: {
                  name: 'f',
                  args: { a: 'b' },
                  partialArgs: [{ jsonPath: '$.a', stringValue: 's' }],
                },
              },
            ],
          },
          groundingMetadata: { groundingChunks: [{ web: { uri: 'https://a.example/', title: 't' } }] },
          citationMetadata: { citationSources: [{ uri: 'https://a.example/' }] },
          logprobsResult: {
            chosenCandidates: [{ token: 'a' }],
            topCandidates: [{ candidates: [{ token: 'b' }] }],
          },
        },
      ],
    },
    {
      error: {
        code: 500,
        message: 'm',
        status: 'INTERNAL',
        details: [{ reason: 'r', metadata: { a: 'b' } }],
      },
    },
    {
      promptFeedback: { blockReason: 'SAFETY' },
      usageMetadata: { trafficType: 't' },
      createTime: '2026-01-01T00:00:00Z',
      ...UNKNOWN,
    },
  ],
};
