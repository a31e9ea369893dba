import type { Hints } from '../../chat/member-reader.ts';

/** Members of a request that change no answer. */
export const REQUEST_HINTS: Hints = {
  prediction: 'only makes the answer faster',
  prompt_cache_key: 'finds a cached prompt',
  prompt_cache_options: 'how a prompt is cached',
  prompt_cache_retention: 'how long a prompt is cached',
  store: 'keeps the answer for the dashboard of the provider',
};

/** Of `stream_options`. */
export const STREAM_HINTS: Hints = {
  include_obfuscation: 'padding against an observer of the network',
};

/** Of an assistant message. Clients send back what they got, with members that only the client reads. */
export const ASSISTANT_HINTS: Hints = {
  annotations: 'sources of a text that is kept',
  provider_specific_fields: 'members of the answer that LiteLLM keeps for its callers',
  reasoning_details: 'the reasoning again, in the form of OpenRouter',
  thinking_blocks: 'the reasoning again, in the form of LiteLLM',
};
