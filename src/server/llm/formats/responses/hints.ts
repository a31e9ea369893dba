import type { Hints } from '../../chat/member-reader.ts';

/** Members of a request that change no answer. */
export const REQUEST_HINTS: Hints = {
  client_metadata: 'describes the client',
  max_tool_calls: 'limits calls of tools that run at the provider, which are refused',
  prompt_cache_key: 'finds a cached prompt',
  prompt_cache_options: 'how a prompt is cached',
  prompt_cache_retention: 'how long a prompt is cached',
  store: 'keeps the answer for later calls, which are refused because they name it',
};

/** Of `stream_options`. */
export const STREAM_HINTS: Hints = {
  include_obfuscation: 'padding against an observer of the network',
};

/** Of an input item: what the API returned with it. */
export const ITEM_HINTS: Hints = {
  end_turn: 'whether the client goes on by itself',
  id: 'identifier of a stored item; the item itself is kept',
  phase: 'where the client shows the text',
  status: 'whether the item was complete',
};

/** Of a text of the assistant. */
export const TEXT_HINTS: Hints = {
  annotations: 'sources of an earlier text that is kept',
  logprobs: 'probabilities of an earlier text that is kept',
};

/** Values of `include` that add data of tools that run at the provider, which are refused, or data that is always returned. */
export const INCLUDE_HINTS = [
  'reasoning.encrypted_content',
  'code_interpreter_call.outputs',
  'computer_call_output.output.image_url',
  'file_search_call.results',
  'message.input_image.image_url',
  'web_search_call.action.sources',
  'web_search_call.results',
];
