import type { FormatKey } from '../../src/server/llm/formats/index.ts';
import { IMAGE_URL, PNG, SCHEMA, UNKNOWN } from './llm-member-values.ts';

/** Requests with members of all kinds, besides `model`. */
export const REQUESTS: Partial<Record<FormatKey, object>> = {
  completions: {
    messages: [
      { role: 'system', content: 'Be brief.', name: 'boss' },
      { role: 'user', content: [{ type: 'text', text: 'Hi' }, IMAGE_URL, { type: 'text', text: 'there' }] },
      {
        role: 'assistant',
        content: 'a',
        refusal: 'b',
        reasoning_content: 'c',
        audio: { id: 'audio_1' },
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":"b"}' } }],
        annotations: [{ type: 'url_citation', url_citation: { url: 'https://a.example/', title: 't' } }],
        ...UNKNOWN,
      },
      { role: 'tool', tool_call_id: 'c1', content: 'done' },
      {
        role: 'user',
        content: [
          { type: 'input_audio', input_audio: { data: PNG, format: 'wav' } },
          { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${PNG}` } },
        ],
      },
    ],
    tools: [{ type: 'function', function: { name: 'f', description: 'd', parameters: SCHEMA } }],
    tool_choice: { type: 'function', function: { name: 'f' } },
    response_format: { type: 'json_schema', json_schema: { name: 'r', schema: SCHEMA } },
    prediction: { type: 'content', content: 'p' },
    stop: ['end'],
    user: 'someone',
    metadata: { key: 'value' },
    web_search_options: { user_location: { approximate: { city: 'Rome' } } },
    chat_template: '{{ messages }}',
    chat_template_kwargs: { greeting: 'hello' },
    extra_body: { guided_regex: 'x', deep: [{ deeper: 'y' }] },
    ...UNKNOWN,
  },
  textCompletions: { prompt: ['a', 'b'], suffix: 's', stop: 'x', user: 'u', ...UNKNOWN },
  responses: {
    instructions: 'i',
    input: [
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_text', text: 'a' },
          { type: 'input_image', image_url: 'https://a.example/x.png' },
        ],
      },
      {
        type: 'message',
        role: 'user',
        content: [{ type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${PNG}` }],
      },
      { type: 'function_call', call_id: 'c', name: 'f', arguments: '{"a":"b"}' },
      { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_text', text: 'o' }] },
      { type: 'local_shell_call', id: 'i', call_id: 'c', action: { command: ['ls'], env: { A: 'b' } } },
      { type: 'reasoning', id: 'r', summary: [{ type: 'summary_text', text: 's' }], encrypted_content: PNG },
      { type: 'new_item', ...UNKNOWN },
    ],
    tools: [{ type: 'mcp', server_label: 'l', server_url: 'https://a.example/', headers: { 'x-a': 'b' } }],
    text: { format: { type: 'json_schema', name: 'r', schema: SCHEMA } },
    metadata: { key: 'value' },
    prompt_cache_key: 'k',
    safety_identifier: 's',
    include: ['reasoning.encrypted_content'],
    ...UNKNOWN,
  },
  messages: {
    max_tokens: 9,
    system: [{ type: 'text', text: 's', cache_control: { type: 'ephemeral' } }],
    messages: [
      {
        role: 'user',
        content: [
          {
            type: 'text',
            text: 'Hi',
            citations: [{ type: 'char_location', cited_text: 'c', document_title: 't' }],
          },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } },
          { type: 'image', source: { type: 'url', url: 'https://a.example/x.png' } },
          {
            type: 'document',
            title: 't',
            context: 'c',
            source: { type: 'text', media_type: 'text/plain', data: 'd' },
          },
          {
            type: 'search_result',
            source: 'https://a.example/',
            title: 't',
            content: [{ type: 'text', text: 'x' }],
          },
        ],
      },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 't', signature: PNG },
          { type: 'redacted_thinking', data: PNG },
          { type: 'tool_use', id: 't', name: 'f', input: { city: 'Rome', list: [{ deep: 'x' }] } },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 't', content: [{ type: 'text', text: 'r' }], ...UNKNOWN },
        ],
      },
    ],
    tools: [{ name: 'f', description: 'd', input_schema: SCHEMA, input_examples: [{ city: 'Rome' }] }],
    tool_choice: { type: 'tool', name: 'f' },
    stop_sequences: ['x'],
    metadata: { user_id: 'u' },
    mcp_servers: [{ type: 'url', url: 'https://a.example/', name: 'n', authorization_token: 't' }],
    container: { id: 'c', skills: [{ type: 'custom', skill_id: 's' }] },
    ...UNKNOWN,
  },
  generateContent: {
    systemInstruction: { parts: [{ text: 's' }] },
    contents: [
      {
        role: 'user',
        parts: [
          { text: 'a' },
          { inlineData: { mimeType: 'image/png', data: PNG } },
          { fileData: { fileUri: 'https://a.example/f', mimeType: 'image/png', displayName: 'd' } },
        ],
      },
      {
        role: 'model',
        parts: [{ functionCall: { name: 'f', args: { city: 'Rome' } }, thoughtSignature: PNG }],
      },
      { role: 'user', parts: [{ functionResponse: { name: 'f', response: { result: 'r' } } }] },
      { role: 'model', parts: [{ executableCode: { language: 'PYTHON', code: 'x' } }], ...UNKNOWN },
    ],
    tools: [{ functionDeclarations: [{ name: 'f', description: 'd', parameters: SCHEMA }] }],
    toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['f'] } },
    generationConfig: { stopSequences: ['x'], responseMimeType: 'text/plain', responseSchema: SCHEMA },
    safetySettings: [{ category: 'HARM', threshold: 'NONE' }],
    labels: { team: 'a' },
    ...UNKNOWN,
  },
  embeddings: { input: ['a', 'b'], user: 'u', encoding_format: 'float', ...UNKNOWN },
  rerank: { query: 'q', documents: ['a', { text: 'b', title: 't' }], ...UNKNOWN },
  moderations: { input: [{ type: 'text', text: 'a' }, IMAGE_URL], ...UNKNOWN },
  speech: { input: 'a', voice: 'alloy', instructions: 'i', ...UNKNOWN },
  images: { prompt: 'a', size: '1x1', user: 'u', ...UNKNOWN },
  embedContent: { content: { parts: [{ text: 'a' }] }, title: 't', taskType: 'X', ...UNKNOWN },
  batchEmbedContents: { requests: [{ content: { parts: [{ text: 'a' }] }, title: 't', ...UNKNOWN }] },
};

/** A request whose tokens `countTokens` of the Gemini API counts. */
export const COUNT_TOKENS = {
  generateContentRequest: {
    model: 'models/m',
    contents: [{ role: 'user', parts: [{ text: 'a' }] }],
    systemInstruction: { parts: [{ text: 's' }] },
    tools: [{ functionDeclarations: [{ name: 'f', description: 'd' }] }],
    ...UNKNOWN,
  },
};
