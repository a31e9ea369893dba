/** What may differ. */
export type Part = 'status' | 'path' | 'auth' | 'body' | 'count';

/** A config object, and calls of a client that Portkey's gateway and the gateway get. */
export interface Case {
  readonly name: string;
  readonly config: (base: string) => object;
  readonly path?: string;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  /** How often it is sent; once by default. */
  readonly times?: number;
  readonly differs?: { readonly in: readonly Part[]; readonly because: string };
}

/** A target at a provider, by the path that its calls get: `fails-CODE` in it answers with that status. */
const at = (base: string, path: string, more: object = {}): object => ({
  ...{ provider: 'openai', api_key: `sk-${path}`, custom_host: `${base}/${path}/v1` },
  ...more,
});
/** A provider other than OpenAI at this address. */
const own = (provider: string, more: object = {}): Case => ({
  name: `a chat of ${provider}`,
  config: (base) => ({ provider, api_key: 'k', custom_host: `${base}/own`, ...more }),
});
const fallback = (codes?: readonly number[]): object => ({
  strategy: { mode: 'fallback', ...(codes !== undefined && { on_status_codes: codes }) },
});
const balanced = { strategy: { mode: 'loadbalance' } };
const slow = { override_params: { model: 'slow' } };

/** Portkey's only conditions: then a target of this name. */
const conditions = (...all: readonly (readonly [query: object, name: string])[]): object[] =>
  all.map(([query, name]) =>
    Object.fromEntries([
      ['query', query],
      ['then', name],
    ]),
  );

const conditional = (base: string): object => ({
  strategy: {
    mode: 'conditional',
    conditions: conditions(
      [{ 'metadata.plan': { $eq: 'paid' } }, 'paid'],
      [{ $and: [{ 'params.max_tokens': { $gt: 100 } }, { 'params.model': { $regex: '^gpt' } }] }, 'large'],
    ),
    default: 'other',
  },
  targets: ['paid', 'large', 'other'].map((name) => at(base, name, { name })),
});

/** Portkey's package fails here with `TypeError: immutable` when it has the answer on Node.js 20 and 26. */
const BROKEN: Case['differs'] = {
  in: ['status'],
  because: 'the package on npm answers streams and embeddings with 500, after the call of the provider',
};
const stream = { stream: true, stream_options: { include_usage: true } };

const check = (rule: string): object => ({ 'default.regexMatch': { rule, not: true }, deny: true });

export const CASES: readonly Case[] = [
  { name: 'one provider', config: (base) => at(base, 'one') },
  { name: 'a stream', config: (base) => at(base, 'one'), body: stream, differs: BROKEN },
  {
    name: 'embeddings',
    config: (base) => at(base, 'one'),
    path: '/v1/embeddings',
    body: { input: 'Hi' },
    differs: BROKEN,
  },
  {
    name: 'members and the model that replace those of the client',
    config: (base) => at(base, 'one', { override_params: { model: 'own', temperature: 0.1 } }),
    body: { temperature: 1, seed: 7 },
  },
  {
    name: 'an organization and a project',
    config: (base) => at(base, 'one', { openai_organization: 'org', openai_project: 'proj' }),
  },
  {
    name: 'headers that are sent on',
    config: (base) => at(base, 'one', { forward_headers: ['x-team'] }),
    headers: { 'x-team': 'red' },
  },
  {
    name: 'messages of Claude',
    config: (base) => at(base, 'claude', { provider: 'anthropic' }),
    path: '/v1/messages',
    body: { max_tokens: 20 },
  },
  {
    name: 'a chat of Claude',
    config: (base) => at(base, 'claude', { provider: 'anthropic', override_params: { model: 'claude-x' } }),
    body: { max_tokens: 20, temperature: 0.5 },
  },
  ...[
    ...['mistral-ai', 'groq', 'openrouter', 'deepseek', 'x-ai', 'fireworks-ai'],
    ...['cerebras', 'deepinfra', 'perplexity-ai', 'moonshot', 'sambanova', 'nebius'],
  ].map((provider) => own(provider)),
  {
    ...own('ollama'),
    differs: { in: ['auth'], because: 'Portkey sends Ollama no key, also if the config has one' },
  },
  { ...own('together-ai'), differs: { in: ['body'], because: 'Portkey adds `max_tokens: 128`' } },
  {
    ...own('google'),
    differs: { in: ['path', 'auth', 'body'], because: 'the gateway uses the OpenAI API of Gemini' },
  },
  {
    ...own('azure-openai', { resource_name: 'eu', deployment_id: 'dep', api_version: '2024-10-21' }),
    differs: { in: ['body'], because: 'the deployment is the model in the body, too; Azure reads the path' },
  },
  {
    ...own('azure-openai', { resource_name: 'eu', deployment_id: 'dep', api_version: 'v1' }),
    name: 'a chat of Azure without a dated version',
  },
  ...[500, 429, 400, 404].map((code) => ({
    name: `a fallback after ${code}`,
    config: (base: string) => ({ ...fallback(), targets: [at(base, `fails-${code}`), at(base, 'two')] }),
  })),
  {
    name: 'a fallback after 401',
    config: (base) => ({ ...fallback(), targets: [at(base, 'fails-401'), at(base, 'two')] }),
  },
  {
    name: 'a fallback of a stream',
    config: (base) => ({ ...fallback(), targets: [at(base, 'fails-503'), at(base, 'two')] }),
    body: stream,
    differs: BROKEN,
  },
  {
    name: 'a fallback after a status of its list',
    config: (base) => ({ ...fallback([429]), targets: [at(base, 'fails-429'), at(base, 'two')] }),
  },
  {
    name: 'no fallback after another status',
    config: (base) => ({ ...fallback([429]), targets: [at(base, 'fails-500'), at(base, 'two')] }),
  },
  {
    name: 'a fallback whose targets all fail',
    config: (base) => ({ ...fallback(), targets: [at(base, 'fails-500'), at(base, 'fails-503')] }),
  },
  {
    name: 'a fallback whose first target fails again',
    config: (base) => ({ ...fallback(), targets: [at(base, 'fails-500'), at(base, 'two')] }),
    times: 3,
  },
  {
    name: 'a group inside a fallback',
    config: (base) => ({
      ...fallback(),
      targets: [
        { ...balanced, targets: [at(base, 'never', { weight: 0 }), at(base, 'fails-500', { weight: 1 })] },
        at(base, 'two'),
      ],
    }),
    differs: { in: ['count'], because: 'the others of a group are tried before the next level' },
  },
  {
    name: 'fallbacks inside a group',
    config: (base) => ({
      ...balanced,
      targets: [
        { ...fallback(), weight: 1, targets: [at(base, 'fails-500'), at(base, 'two')] },
        { ...fallback(), weight: 0, targets: [at(base, 'never'), at(base, 'never')] },
      ],
    }),
    differs: { in: ['count'], because: 'the targets of a branch without calls are used when others fail' },
  },
  {
    name: 'a fallback inside a fallback',
    config: (base) => ({
      ...fallback(),
      targets: [{ ...fallback(), targets: [at(base, 'fails-500'), at(base, 'fails-503')] }, at(base, 'two')],
    }),
  },
  {
    name: 'the only target with a weight',
    config: (base) => ({
      ...balanced,
      targets: [at(base, 'never', { weight: 0 }), at(base, 'always', { weight: 3 })],
    }),
    times: 5,
  },
  {
    name: 'a target of a group that fails',
    config: (base) => ({
      ...balanced,
      targets: [at(base, 'fails-500', { weight: 1 }), at(base, 'never', { weight: 0 })],
    }),
  },
  {
    name: 'what a target inherits',
    config: (base) => ({
      strategy: { mode: 'single' },
      override_params: { seed: 1, temperature: 0 },
      targets: [at(base, 'one', { override_params: { temperature: 1 } })],
    }),
  },
  { name: 'no condition that holds', config: conditional },
  {
    name: 'a condition on metadata',
    config: conditional,
    headers: { 'x-portkey-metadata': '{"plan":"paid"}' },
  },
  { name: 'a condition on the request', config: conditional, body: { max_tokens: 200 } },
  {
    name: 'retries after 500',
    config: (base) => at(base, 'fails-500', { retry: { attempts: 2 } }),
  },
  {
    name: 'no retry after another status',
    config: (base) => at(base, 'fails-500', { retry: { attempts: 2, on_status_codes: [429] } }),
  },
  {
    name: 'retries of a fallback',
    config: (base) => ({
      ...fallback(),
      retry: { attempts: 1 },
      targets: [at(base, 'fails-500'), at(base, 'two')],
    }),
    differs: { in: ['count'], because: 'a call is repeated when every target has failed' },
  },
  {
    name: 'a fallback after the timeout',
    config: (base) => ({
      ...fallback(),
      request_timeout: 500,
      targets: [at(base, 'one', slow), at(base, 'two')],
    }),
  },
  {
    name: 'a timeout',
    config: (base) => at(base, 'one', { ...slow, request_timeout: 500 }),
    differs: { in: ['status'], because: 'no answer in time is 504, the status of gateways, not 408' },
  },
  {
    name: 'a prompt that a pattern refuses',
    config: (base) => at(base, 'one', { input_guardrails: [check('H[a-z]')] }),
  },
  {
    name: 'a prompt that a pattern lets pass',
    config: (base) => at(base, 'one', { input_guardrails: [check('AKIA')] }),
  },
  {
    name: 'an answer with a word that it must not have',
    config: (base) =>
      at(base, 'one', {
        after_request_hooks: [
          {
            type: 'guardrail',
            deny: true,
            checks: [{ id: 'default.contains', parameters: { operator: 'none', words: ['Hello.'] } }],
          },
        ],
      }),
  },
  {
    name: 'equal calls with a cache',
    config: (base) => at(base, 'one', { cache: { mode: 'simple', max_age: 60 } }),
    times: 2,
    differs: { in: ['count'], because: 'the package on npm has no cache: it calls the provider each time' },
  },
];
