import type { DefaultFields } from './format.ts';

type Defaults = readonly (readonly [field: string, value: unknown])[];

/** Fields of chat completions that no other API of chats has in the same form. */
export const OF_COMPLETIONS: readonly string[] = [
  ...['seed', 'stop', 'n', 'presence_penalty', 'frequency_penalty', 'logit_bias', 'logprobs', 'verbosity'],
  ...['response_format', 'reasoning_effort', 'modalities', 'max_completion_tokens', 'tools', 'tool_choice'],
];

/**
 * Defaults for a call of some API. They are written once for clients of all APIs, mostly as fields of chat completions; another API
 * would refuse those that it does not have.
 */
export function defaultsFor(
  { defaultFields }: { readonly defaultFields?: DefaultFields },
  defaults: Defaults,
): Defaults {
  if (defaultFields === undefined || defaults.length === 0) return defaults;
  const { without, renamed } = defaultFields;
  return defaults.flatMap(([field, value]) =>
    without.has(field) ? [] : [[renamed?.get(field) ?? field, value] as const],
  );
}
