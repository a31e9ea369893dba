import type { FormatKey } from '../formats/index.ts';
import type { FieldChanges } from './call-body.ts';

type Defaults = FieldChanges['defaults'];

/** Fields of chat completions that no other API of chats has in the same form. */
const OF_CHATS = [
  ...['seed', 'stop', 'n', 'presence_penalty', 'frequency_penalty', 'logit_bias', 'logprobs', 'verbosity'],
  ...['response_format', 'reasoning_effort', 'modalities', 'max_completion_tokens', 'tools', 'tool_choice'],
];

interface Difference {
  readonly without: ReadonlySet<string>;
  readonly renamed?: Readonly<Record<string, string>>;
}

/** What of the API of chat completions other APIs do not have. */
const DIFFERENCES: Partial<Record<FormatKey, Difference>> = {
  messages: { without: new Set([...OF_CHATS, 'user', 'parallel_tool_calls', 'top_logprobs', 'store']) },
  responses: {
    without: new Set([...OF_CHATS, 'thinking', 'top_k']),
    renamed: { max_tokens: 'max_output_tokens' },
  },
  generateContent: {
    without: new Set([
      ...OF_CHATS,
      'user',
      'temperature',
      'top_p',
      'top_k',
      'max_tokens',
      'thinking',
      'store',
    ]),
  },
};

/**
 * Defaults for a call of some API. They are written once for clients of all APIs, mostly as fields of chat completions; another API
 * would refuse those that it does not have.
 */
export function defaultsFor(format: FormatKey | undefined, defaults: Defaults): Defaults {
  const difference = format === undefined ? undefined : DIFFERENCES[format];
  if (difference === undefined || defaults.length === 0) return defaults;
  const { without, renamed = {} } = difference;
  return defaults.flatMap(([field, value]) => {
    if (without.has(field)) return [];
    return [[Object.hasOwn(renamed, field) ? (renamed[field] ?? field) : field, value] as const];
  });
}
