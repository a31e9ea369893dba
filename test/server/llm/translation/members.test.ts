import { readFileSync, writeFileSync } from 'node:fs';
import { env } from 'node:process';
import type { MessageCreateParams } from '@anthropic-ai/sdk/resources/beta/messages/messages';
import type { ChatCompletionCreateParams } from 'openai/resources/chat/completions';
import type { ResponseCreateParams } from 'openai/resources/responses/responses';
import { expect, test } from 'vitest';
import type { Json } from '../../../../src/server/llm/chat/chat-format.ts';
import { translateRequest } from '../../../../src/server/llm/translation/translation.ts';
import { formatOf, outcomeOf, TARGET } from './cases.ts';

/** Values of a member: one, or several by a text that tells them apart. */
type Samples<Member extends string> = { readonly [Name in Member]: readonly unknown[] };

type KeysOfUnion<T> = T extends unknown ? keyof T & string : never;

const TOOL = { type: 'object', properties: {} };

/** A value that is not the default, for each member of the official clients' request types. */
const completions: Samples<KeysOfUnion<ChatCompletionCreateParams>> = {
  audio: [{ format: 'wav', voice: 'alloy' }],
  frequency_penalty: [0.5],
  function_call: ['auto'],
  functions: [[{ name: 'f' }]],
  logit_bias: [{ 50256: -100 }],
  logprobs: [true],
  max_completion_tokens: [5],
  max_tokens: [5],
  messages: [[{ role: 'user', content: 'Another text' }]],
  metadata: [{ a: 'b' }],
  modalities: [['text', 'audio']],
  model: ['another-model'],
  moderation: [{ model: 'omni-moderation-latest' }],
  n: [2],
  parallel_tool_calls: [false],
  prediction: [{ type: 'content', content: 'x' }],
  presence_penalty: [0.5],
  prompt_cache_key: ['k'],
  prompt_cache_options: [{ mode: 'explicit' }],
  prompt_cache_retention: ['24h'],
  reasoning_effort: ['high'],
  response_format: [
    { type: 'json_object' },
    { type: 'json_schema', json_schema: { name: 'a', schema: TOOL } },
  ],
  safety_identifier: ['s'],
  seed: [1],
  service_tier: ['default', 'flex'],
  stop: ['END'],
  store: [true],
  stream: [true],
  stream_options: [{ include_obfuscation: true }],
  temperature: [0.5, 1.5],
  tool_choice: ['required'],
  tools: [[{ type: 'function', function: { name: 'g' } }], [{ type: 'custom', custom: { name: 'g' } }]],
  top_logprobs: [2],
  top_p: [0.5],
  user: ['u'],
  verbosity: ['low'],
  web_search_options: [{}],
};

const messages: Samples<
  | Exclude<KeysOfUnion<MessageCreateParams>, 'betas' | 'user_profile_id' | 'workspace_id'>
  | 'temperature'
  | 'top_k'
  | 'top_p'
> = {
  billing_policy: [{}],
  cache_control: [{ type: 'ephemeral' }],
  compaction: [{}],
  container: ['c'],
  context_management: [
    { edits: [{ type: 'clear_tool_uses_20250919' }] },
    { edits: [{ type: 'clear_thinking_20251015' }] },
    { edits: [{ type: 'compact_20260112' }] },
  ],
  diagnostics: [{}],
  fallback_credit_token: ['t'],
  fallbacks: [[]],
  inference_geo: ['us'],
  max_tokens: [5],
  mcp_servers: [[{ type: 'url', url: 'https://example.com', name: 'a' }]],
  messages: [[{ role: 'user', content: 'Another text' }]],
  metadata: [{ user_id: 'u' }],
  model: ['another-model'],
  output_config: [{ effort: 'low' }, { format: { type: 'json_schema', schema: TOOL } }],
  output_format: [{ type: 'json_schema', schema: TOOL }],
  service_tier: ['standard_only'],
  speed: ['fast'],
  stop_sequences: [['END']],
  stream: [true],
  system: ['Be brief.'],
  temperature: [0.5],
  thinking: [{ type: 'enabled', budget_tokens: 1024 }, { type: 'disabled' }],
  thread: [{}],
  tool_choice: [{ type: 'any' }],
  tools: [[{ name: 'g', input_schema: TOOL }], [{ type: 'web_search_20250305', name: 'web_search' }]],
  top_k: [5],
  top_p: [0.5],
};

const responses: Samples<KeysOfUnion<ResponseCreateParams>> = {
  background: [true],
  context_management: [[{ type: 'compaction' }]],
  conversation: ['conv_1'],
  include: [['reasoning.encrypted_content'], ['message.output_text.logprobs']],
  input: ['Another text'],
  instructions: ['Be brief.'],
  max_output_tokens: [5],
  metadata: [{ a: 'b' }],
  model: ['another-model'],
  moderation: [{ model: 'omni-moderation-latest' }],
  parallel_tool_calls: [false],
  previous_response_id: ['resp_1'],
  prompt: [{ id: 'pmpt_1' }],
  prompt_cache_key: ['k'],
  prompt_cache_options: [{ mode: 'explicit' }],
  prompt_cache_retention: ['24h'],
  reasoning: [{ effort: 'high' }],
  safety_identifier: ['s'],
  service_tier: ['default', 'priority'],
  store: [true],
  stream: [true],
  stream_options: [{ include_obfuscation: true }],
  temperature: [0.5, 1.5],
  text: [
    { verbosity: 'low' },
    { format: { type: 'json_object' } },
    { format: { type: 'json_schema', name: 'a', schema: TOOL } },
  ],
  tool_choice: ['required'],
  tools: [
    [{ type: 'function', name: 'g', parameters: TOOL, strict: false }],
    [{ type: 'custom', name: 'g' }],
    [{ type: 'namespace', name: 'n', tools: [{ type: 'function', name: 'g' }] }],
    [{ type: 'tool_search', execution: 'client' }],
    [{ type: 'web_search' }],
  ],
  top_logprobs: [2],
  top_p: [0.5],
  truncation: ['auto'],
  user: ['u'],
};

const FORMATS = {
  completions: {
    title: 'Chat Completions',
    base: {
      model: 'some-model',
      messages: [{ role: 'user', content: 'Hi' }],
      tools: [{ type: 'function', function: { name: 'f' } }],
    },
    samples: completions,
  },
  messages: {
    title: 'Messages',
    base: {
      model: 'some-model',
      max_tokens: 2000,
      messages: [{ role: 'user', content: 'Hi' }],
      tools: [{ name: 'f', input_schema: TOOL }],
    },
    samples: messages,
  },
  responses: {
    title: 'Responses',
    base: {
      model: 'some-model',
      input: 'Hi',
      tools: [{ type: 'function', name: 'f', parameters: TOOL, strict: false }],
    },
    samples: responses,
  },
} as const;

type Key = keyof typeof FORMATS;

/** What happens to a member: whether the written body depends on it. */
function fate(from: Key, to: Key, member: string, value: unknown): 'translated' | 'left out' | 'refused' {
  const { base } = FORMATS[from];
  const translate = (body: Json) =>
    outcomeOf(() => translateRequest(formatOf(from), formatOf(to), body, TARGET).body);
  const outcome = translate({ ...base, [member]: value });
  if ('refused' in outcome) {
    // The error names the member as the client knows it.
    expect(outcome['refused']).toMatch(new RegExp(`^${member}\\b`));
    return 'refused';
  }
  return JSON.stringify(outcome) === JSON.stringify(translate(base)) ? 'left out' : 'translated';
}

function table(from: Key): string {
  const targets = (Object.keys(FORMATS) as Key[]).filter((key) => key !== from);
  const { title, samples } = FORMATS[from];
  const cases = Object.entries(samples).flatMap(([member, values]) =>
    values.map((value) => ({
      label: values.length === 1 ? `\`${member}\`` : `\`${member}: ${JSON.stringify(value)}\``,
      fates: targets.map((to) => fate(from, to, member, value)),
    })),
  );
  const row = (wanted: ReturnType<typeof fate>): string => {
    const cells = targets.map((_, index) =>
      cases.flatMap(({ label, fates }) => (fates[index] === wanted ? [label] : [])).join(', '),
    );
    return `| ${[wanted, ...cells].join(' | ')} |`;
  };
  return [
    `### Members of ${title} requests`,
    '',
    `| | ${targets.map((to) => `to ${FORMATS[to].title}`).join(' | ')} |`,
    '|---|---|---|',
    row('left out'),
    row('refused'),
  ].join('\n');
}

test('docs/llm-translation.md says of every request member of the official clients what becomes of it', () => {
  const file = new URL('../../../../docs/llm-translation.md', import.meta.url);
  const text = readFileSync(file, 'utf8');
  const start = text.indexOf('### Members of');
  const tables = `${(Object.keys(FORMATS) as Key[]).map(table).join('\n\n')}\n`;
  if (env['UPDATE_GOLDEN'] === undefined) expect(text.slice(start)).toBe(tables);
  else writeFileSync(file, text.slice(0, start) + tables);
});
