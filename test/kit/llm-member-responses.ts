import type { FormatKey } from '../../src/server/llm/formats/index.ts';
import { LOGPROB, PNG, SCHEMA, UNKNOWN } from './llm-member-values.ts';

/** Responses with members of all kinds. */
export const RESPONSES: Partial<Record<FormatKey, object>> = {
  completions: {
    id: 'x',
    object: 'chat.completion',
    created: 1_760_000_000,
    model: 'm',
    choices: [
      {
        index: 0,
        finish_reason: 'stop',
        logprobs: { content: [LOGPROB], refusal: null },
        message: {
          role: 'assistant',
          content: 'a',
          reasoning: 'r',
          reasoning_details: [{ type: 'reasoning.text', text: 't', signature: PNG }],
          tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
          annotations: [
            { type: 'url_citation', url_citation: { url: 'https://a.example/', title: 't', content: 'c' } },
          ],
          images: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } }],
          audio: { id: 'a', data: PNG, transcript: 't', expires_at: 1 },
          ...UNKNOWN,
        },
        ...UNKNOWN,
      },
    ],
    citations: ['https://a.example/'],
    search_results: [{ title: 't', url: 'https://a.example/', snippet: 's', date: '2026-01-01' }],
    images: [{ image_url: 'https://a.example/x.png' }],
    metadata: { key: 'value' },
    system_fingerprint: 'fp_1',
    service_tier: 'default',
    provider: 'P',
    output: [],
    ...UNKNOWN,
  },
  textCompletions: {
    choices: [{ text: 'a', logprobs: { tokens: ['a'], top_logprobs: [{ b: -1 }] } }],
    citations: ['c'],
    ...UNKNOWN,
  },
  responses: {
    id: 'r',
    object: 'response',
    status: 'completed',
    model: 'm',
    instructions: 'i',
    incomplete_details: { reason: 'max_output_tokens' },
    tools: [{ type: 'function', name: 'f', description: 'd', parameters: SCHEMA }],
    metadata: { key: 'value' },
    output: [
      {
        type: 'message',
        id: 'm',
        role: 'assistant',
        content: [
          {
            type: 'output_text',
            text: 'a',
            annotations: [
              { type: 'url_citation', url: 'https://a.example/', title: 't' },
              { type: 'file_citation', file_id: 'f', filename: 'n' },
            ],
            logprobs: [LOGPROB],
          },
        ],
      },
      { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
      {
        type: 'web_search_call',
        id: 'w',
        action: { type: 'search', query: 'q', sources: [{ url: 'https://a.example/' }] },
      },
      { type: 'image_generation_call', id: 'i', result: PNG, revised_prompt: 'p' },
      {
        type: 'mcp_list_tools',
        server_label: 'l',
        tools: [{ name: 'f', description: 'd', input_schema: SCHEMA }],
      },
      {
        type: 'code_interpreter_call',
        code: 'c',
        outputs: [
          { type: 'logs', logs: 'l' },
          { type: 'image', url: 'https://a.example/' },
        ],
      },
      { type: 'new_item', ...UNKNOWN },
    ],
    output_text: 'a',
    ...UNKNOWN,
  },
  messages: {
    id: 'm',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [
      { type: 'thinking', thinking: 't', signature: PNG },
      {
        type: 'text',
        text: 'a',
        citations: [
          {
            type: 'web_search_result_location',
            cited_text: 'c',
            url: 'https://a.example/',
            title: 't',
            encrypted_index: PNG,
          },
        ],
      },
      { type: 'tool_use', id: 't', name: 'f', input: { city: 'Rome', list: [{ deep: 'x' }] } },
      {
        type: 'web_search_tool_result',
        tool_use_id: 't',
        content: [
          {
            type: 'web_search_result',
            url: 'https://a.example/',
            title: 't',
            encrypted_content: PNG,
            page_age: '1 day',
          },
        ],
      },
      { type: 'new_block', ...UNKNOWN },
    ],
    stop_reason: 'end_turn',
    stop_sequence: 'x',
    container: { id: 'c', expires_at: '2026-01-01T00:00:00Z' },
    ...UNKNOWN,
  },
  generateContent: {
    candidates: [
      {
        content: {
          role: 'model',
          parts: [
            { text: 'a' },
            { functionCall: { name: 'f', args: { city: 'Rome' } }, thoughtSignature: PNG },
            { inlineData: { mimeType: 'image/png', data: PNG } },
          ],
        },
        finishReason: 'STOP',
        finishMessage: 'm',
        citationMetadata: { citationSources: [{ uri: 'https://a.example/', license: 'l' }] },
        groundingMetadata: {
          webSearchQueries: ['q'],
          groundingChunks: [{ web: { uri: 'https://a.example/', title: 't' } }],
          searchEntryPoint: { renderedContent: '<p>' },
        },
        logprobsResult: {
          chosenCandidates: [{ token: 'a' }],
          topCandidates: [{ candidates: [{ token: 'b' }] }],
        },
        index: 0,
        ...UNKNOWN,
      },
    ],
    promptFeedback: { blockReason: 'SAFETY', blockReasonMessage: 'm' },
    modelVersion: 'm',
    responseId: 'r',
    createTime: '2026-01-01T00:00:00.123456Z',
    ...UNKNOWN,
  },
  embeddings: { object: 'list', data: [{ object: 'embedding', embedding: [0.5] }], model: 'm', ...UNKNOWN },
  rerank: { id: 'r', results: [{ index: 0, document: { text: 'd' } }], ...UNKNOWN },
  moderations: { id: 'm', results: [{ flagged: false, categories: { hate: false } }], ...UNKNOWN },
  transcriptions: { text: 'a', words: [{ word: 'a' }], segments: [{ text: 'a' }], language: 'l', ...UNKNOWN },
  images: { data: [{ b64_json: PNG, url: 'https://a.example/', revised_prompt: 'p' }], ...UNKNOWN },
};
