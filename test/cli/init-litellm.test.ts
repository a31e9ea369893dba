// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of configurations.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { type Imported, nothingImported } from '../../src/cli/init/imported.ts';
import { readLitellm } from '../../src/cli/init/litellm/read.ts';
import { Variables } from '../../src/cli/init/variables.ts';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';

/** What is imported from a file, and what is left out of it, as lines. */
function read(yaml: string, ...others: readonly string[]) {
  const variables = new Variables({});
  const imported: Imported = nothingImported();
  const context = {
    home: '/home/ann',
    workspace: undefined,
    expandsBareNames: false,
    variables,
    source: 'config.yaml',
  };
  for (const each of [yaml, ...others]) readLitellm(parse(each), context, imported);
  return {
    ...imported,
    models: imported.models.map(({ value }) => value),
    virtualModels: imported.virtualModels.map(({ value }) => value),
    lines: imported.leftOut.map(
      ({ what, reason, isWarning }) => `${isWarning ? 'warning: ' : ''}${what}: ${reason}`,
    ),
    variables: variables.missing,
  };
}

/** A file with these models: `NAME: litellm_params`. */
const models = (...entries: readonly string[]): string =>
  `model_list:\n${entries
    .map((entry) => entry.split(/: (.*)/s))
    .map(([name, params]) => `- { model_name: ${name}, litellm_params: ${params} }\n`)
    .join('')}`;

const targetsOf = ({ virtualModels }: ReturnType<typeof read>, name: string): unknown =>
  (
    virtualModels.find((each) => each.name === name)?.['routing'] as
      | { failover: { targets: unknown } }
      | undefined
  )?.failover.targets;

const KEY = 'api_key: sk-1';

describe('names of models', () => {
  test.each([
    ['"anthropic/*": { model: "anthropic/*" }', 'anthropic', '*'],
    ['"openai/*": { model: "openai/*" }', 'oaiCompat', '*'],
    ['"my/*": { model: "groq/llama-*" }', 'groq', 'llama-*'],
    ['"*": { model: "openai/*" }', 'oaiCompat', undefined],
    ['"claude-*": { model: "anthropic/claude-*" }', 'anthropic', undefined],
    ['all: { model: "*", custom_llm_provider: openai }', 'oaiCompat', '*'],
    ['one: { model: gpt-5 }', 'oaiCompat', 'gpt-5'],
    ['one: { model: claude-x }', 'anthropic', 'claude-x'],
    ['gpt-5: { model: openai/responses/gpt-5 }', 'oaiCompat', 'gpt-5'],
    ['one: { model: bedrock/converse/eu-west-1/a.b-v1:0 }', 'bedrock', 'a.b-v1:0'],
  ])('%s asks the provider for the name that LiteLLM asks for', (entry, provider, model) => {
    const { models: found, lines } = read(models(entry));
    expect(found).toMatchObject([{ provider, params: model === undefined ? {} : { model } }]);
    if (model === undefined) expect(found[0]?.['params']).not.toHaveProperty('model');
    const isGuessed = /"(?:openai|anthropic)\/\*"/.test(entry.slice(0, 14));
    expect(lines).toEqual(
      isGuessed ? [expect.stringMatching(/^`names without (?:openai|anthropic)\/`/)] : [],
    );
  });

  test('a model `*` becomes patterns of OpenAI and Anthropic, and says that others are missing', () => {
    const { models: found, lines } = read(models('"*": { model: "*" }'));
    expect(found.map(({ name, provider }) => [name, provider])).toEqual([
      ['*', 'oaiCompat'],
      ['openai/*', 'oaiCompat'],
      ['claude-*', 'anthropic'],
      ['anthropic/*', 'anthropic'],
    ]);
    expect(lines).toEqual([expect.stringContaining('add an entry for each other one')]);
  });
});

describe('fields of requests', () => {
  test('they are defaults, which values of clients replace', () => {
    const [model] = read(
      models(`a: { model: gpt-5, ${KEY}, temperature: 0.2, max_tokens: 50, top_p: 1, stop: [$x] }`),
    ).models;
    expect(model?.['defaults']).toEqual({ temperature: 0.2, max_tokens: 50, top_p: 1, stop: ['$$x'] });
    expect(model).not.toHaveProperty('overrides');
  });

  test('the body and the headers that LiteLLM adds are always added', () => {
    const entry = `a: { model: gpt-5, extra_body: { chat: 1 }, extra_headers: { x-team: red, x-api-key: s3 }, organization: org }`;
    expect(read(models(entry)).models[0]).toMatchObject({
      overrides: { chat: 1 },
      requestHeaders: {
        set: { 'x-team': 'red', 'x-api-key': `\${A_X_API_KEY}`, 'openai-organization': 'org' },
      },
    });
  });
});

describe('addresses and keys', () => {
  test.each([
    ['anthropic/m', 'http://h', 'http://h/v1'],
    ['anthropic/m', 'http://h/x/', 'http://h/x/v1'],
    ['anthropic/m', 'http://h/v1/messages', 'http://h/v1'],
    ['anthropic/m', 'os.environ/BASE', `\${BASE}/v1`],
    ['mistral/m', 'http://h', 'http://h/v1'],
    ['mistral/m', 'http://h/v1', 'http://h/v1'],
    ['huggingface/m', 'http://h', 'http://h/v1'],
    ['ollama/m', 'http://h', 'http://h/v1'],
    ['openai/m', 'http://h', 'http://h'],
    ['openai/m', 'http://h/v1/', 'http://h/v1'],
    ['groq/m', 'http://h', 'http://h'],
    ['gemini/m', 'http://h/v1beta', 'http://h/v1beta'],
    ['azure_ai/m', 'https://m.eu.models.ai.azure.com/v1', 'https://m.eu.models.ai.azure.com/v1'],
    ['azure/m', 'https://h.example', 'https://h.example/openai'],
    ['azure/m', 'os.environ/BASE', `\${BASE}/openai`],
  ])('%s at %s has the same address', (model, base, baseUrl) => {
    const [found] = read(models(`a: { model: ${model}, api_base: "${base}", ${KEY} }`)).models;
    expect(found).toMatchObject({ params: { baseUrl } });
  });

  test('an address of Azure is the name of the resource; without a version it has that of LiteLLM', () => {
    const entry = `a: { model: azure/d, api_base: "https://eu.openai.azure.com/", ${KEY} }`;
    expect(read(models(entry)).models[0]?.['params']).toEqual({
      ...{ model: 'd', apiKey: `\${A_API_KEY}` },
      ...{ azureResourceName: 'eu', azureApiVersion: '2025-02-01-preview' },
    });
  });

  test('a server without a key gets none of the client', () => {
    const entry = 'a: { model: hosted_vllm/m, api_base: "http://h/v1" }';
    expect(read(models(entry)).models[0]).toMatchObject({ params: { apiKey: 'none' } });
  });

  test('`credential_list` and `environment_variables` have the values of others', () => {
    const found = read(`${models('a: { model: openai/m, litellm_credential_name: mine }')}
credential_list: [{ credential_name: mine, credential_values: { api_key: os.environ/MINE, api_base: "http://h" } }]
environment_variables: { MINE: sk-mine, OTHER: x }`);
    expect(found.models[0]).toMatchObject({ params: { apiKey: `\${MINE}`, baseUrl: 'http://h' } });
    expect(found.variables).toMatchObject([{ name: 'MINE', value: 'sk-mine' }]);
    expect(found.lines).toEqual([expect.stringMatching(/^`environment_variables: OTHER` in config.yaml: /)]);
    const other = read(models('a: { model: openai/m, litellm_credential_name: of-the-pages }'));
    expect(other.lines).toEqual([expect.stringMatching(/^warning: `litellm_credential_name` of a in /)]);
  });
});

test('a model may be a variable whose value is known, and a provider that only LiteLLM knows is one with its API', () => {
  const found = read(`environment_variables: { MODEL: github/gpt-5 }
${models('a: { model: os.environ/MODEL, headers: { x-a: b } }', 'b: { model: os.environ/OTHER }', 'c: { model: petals/x }')}`);
  expect(found.models).toMatchObject([
    {
      name: 'a',
      provider: 'oaiCompat',
      params: {
        model: 'gpt-5',
        apiKey: `\${GITHUB_API_KEY}`,
        baseUrl: 'https://models.inference.ai.azure.com',
      },
      requestHeaders: { set: { 'x-a': 'b' } },
    },
  ]);
  expect(found.lines).toEqual([
    'warning: b in config.yaml: its `model` is a variable without a value: set OTHER for `agctl init`',
    expect.stringMatching(
      /^warning: c in config.yaml: the provider `petals` has no counterpart: .*`oaiCompat`/,
    ),
  ]);
});

describe('prices', () => {
  test('prices of `model_info` and `litellm_params` are a catalog, by the name at the provider', () => {
    const found = read(`model_list:
- { model_name: a, litellm_params: { model: azure/dep, ${KEY}, api_base: "https://h.example", input_cost_per_token: 0.00000015 } }
- model_name: b
  litellm_params: { model: anthropic/claude-x, ${KEY} }
  model_info: { input_cost_per_token: "3e-6", output_cost_per_token: 0.000015, cache_read_input_token_cost: 3e-7,
    cache_creation_input_token_cost: 0.00000375, mode: chat }
- { model_name: d, litellm_params: { model: azure/eu, ${KEY}, api_base: "https://h.example" }, model_info: { base_model: azure/gpt-4o } }
- { model_name: e, litellm_params: { model: azure/us, ${KEY}, api_base: "https://h.example" }, model_info: { base_model: azure/never-heard } }
- { model_name: "o/*", litellm_params: { model: "openai/*", output_cost_per_token: 1e-6 } }
- { model_name: c, litellm_params: { model: claude-x, ${KEY} }, model_info: { input_cost_per_token: 1 } }`);
    expect(found.prices).toEqual([
      {
        azure: {
          models: {
            dep: { rates: { input: '0.15' } },
            eu: { rates: expect.objectContaining({ input: '2.5', output: '10' }) },
          },
        },
        anthropic: {
          models: {
            'claude-x': { rates: { input: '3', output: '15', cacheRead: '0.3', cacheWrite: '3.75' } },
          },
        },
      },
    ]);
    expect(found.lines.join('\n')).toMatch(/`base_model` of e in config.yaml: its price is not known/);
    expect(found.lines.join('\n')).not.toMatch(/base_model` of d/);
    expect(found.lines.join('\n')).toContain(
      '`output_cost_per_token` of o/* in config.yaml: a price is of one model',
    );
    expect(found.lines.join('\n')).toContain(
      '`input_cost_per_token` of c in config.yaml: claude-x of this provider has another price',
    );
  });
});

describe('groups', () => {
  const two = (first: string, second: string): string =>
    models(`a: { model: openai/x, ${KEY}, ${first} }`, `a: { model: openai/y, ${KEY}, ${second} }`);

  test.each([
    ['weight: 3', 'weight: 1', 3, 1],
    ['weight: 0.9', 'weight: 0.1', 1000, 111],
    ['rpm: 900', 'rpm: 100', 900, 100],
    ['tpm: 10', 'seed: 1', 10, 0],
    ['weight: 1, rpm: 1', 'weight: 2, rpm: 9', 1, 2],
    ['seed: 1', 'seed: 2', 1, 1],
  ])('deployments with %s and %s are chosen as often', (first, second, a, b) => {
    const found = read(two(first, second));
    expect(targetsOf(found, 'a')).toEqual([
      { model: 'a#1', priority: 0, weight: a },
      { model: 'a#2', priority: 0, weight: b },
    ]);
    expect(found.models).toMatchObject([{ visibility: 'internal' }, { visibility: 'internal' }]);
  });

  test('by latency, they have no weights; `order` is the priority', () => {
    const byLatency = `${two('weight: 1', 'weight: 2')}router_settings: { routing_strategy: latency-based-routing }`;
    expect(targetsOf(read(byLatency), 'a')).toEqual([
      { model: 'a#1', priority: 0 },
      { model: 'a#2', priority: 0 },
    ]);
    expect(targetsOf(read(two('order: 2', 'order: 1')), 'a')).toEqual([
      { model: 'a#2', priority: 0 },
      { model: 'a#1', priority: 1 },
    ]);
  });

  test('by cost, the cheapest one is first, with its price in the file or the one built in, and those without one are last', () => {
    const found = read(
      `${models(
        `a: { model: openai/gpt-5, ${KEY} }`,
        `a: { model: openai/unknown-1, ${KEY} }`,
        `a: { model: openai/gpt-5-mini, ${KEY} }`,
        `a: { model: openai/gpt-5-mini, ${KEY}, api_base: "https://b.example/v1", weight: 3 }`,
        `a: { model: anthropic/claude-x, ${KEY}, input_cost_per_token: 1e-9, output_cost_per_token: 1e-9 }`,
        `a: { model: openai/unknown-2, ${KEY}, order: 1, input_cost_per_token: 5 }`,
      )}router_settings: { routing_strategy: cost-based-routing }`,
    );
    expect(targetsOf(found, 'a')).toEqual([
      { model: 'a#6', priority: 0 },
      { model: 'a#5', priority: 1 },
      { model: 'a#3', priority: 2 },
      { model: 'a#4', priority: 2 },
      { model: 'a#1', priority: 3 },
      { model: 'a#2', priority: 4 },
    ]);
    expect(found.lines.join()).not.toContain('routing_strategy');
  });

  test('fallbacks, their own fallbacks, those of all models and aliases keep the weights', () => {
    const found = read(`${two('weight: 3', 'weight: 1')}
- { model_name: b, litellm_params: { model: openai/b, ${KEY} } }
- { model_name: c, litellm_params: { model: openai/c, ${KEY} } }
- { model_name: d, litellm_params: { model: openai/d, ${KEY} } }
- { model_name: "anthropic/*", litellm_params: { model: "anthropic/*", ${KEY} } }
litellm_settings: { default_fallbacks: [d] }
router_settings:
  fallbacks: [{ a: [b] }, { b: [anthropic/x, nope] }, { anthropic/y: [c] }]
  model_group_alias: { other: a, plain: { model: c, hidden: true }, none: nope }`);
    const a = [
      { model: 'a#1', priority: 0, weight: 3 },
      { model: 'a#2', priority: 0, weight: 1 },
      { model: 'b#1', priority: 1 },
      { model: 'anthropic/x', priority: 2 },
      { model: 'd', priority: 3 },
    ];
    expect(targetsOf(found, 'a')).toEqual(a);
    expect(targetsOf(found, 'other')).toEqual(a);
    expect(targetsOf(found, 'anthropic/y')).toEqual([
      { model: 'anthropic/y', priority: 0 },
      { model: 'c#1', priority: 1 },
      { model: 'd', priority: 2 },
    ]);
    expect(targetsOf(found, 'plain')).toEqual([
      { model: 'c#1', priority: 0 },
      { model: 'd', priority: 1 },
    ]);
    expect(found.lines).toEqual(
      expect.arrayContaining([
        '`model_group_alias.none` in config.yaml: no model nope',
        'warning: `fallbacks.b` in config.yaml: not imported as a model: nope',
        expect.stringMatching(/^`fallbacks` in config.yaml: no other model is tried after a refusal/),
        '`default_fallbacks` of anthropic/* in config.yaml: names that match a pattern have none',
      ]),
    );
  });
});

describe('settings of all calls', () => {
  const settings = (text: string) => read(`${models(`a: { model: openai/x, ${KEY} }`)}${text}`);
  const retry = (text: string): unknown => settings(text).policies['retry'];

  test.each([
    ['litellm_settings: { request_timeout: 30 }', '30s'],
    ['router_settings: { timeout: 0.5 }', '500ms'],
    ['litellm_settings: { request_timeout: 30 }\nrouter_settings: { timeout: 10 }', '10s'],
  ])('%s is the timeout', (text, backendRequestTimeout) => {
    expect(settings(text).policies['timeout']).toEqual({ backendRequestTimeout });
  });

  test('a timeout of every model is that of all; one of a single model is left out', () => {
    const each = (...timeouts: string[]) =>
      read(models(...timeouts.map((more, index) => `m${index}: { model: openai/x, ${KEY}${more} }`)));
    expect(each(', timeout: 5', ', timeout: 5').policies['timeout']).toEqual({ backendRequestTimeout: '5s' });
    const different = each(', timeout: 5', ', stream_timeout: 7');
    expect(different.policies).not.toHaveProperty('timeout');
    expect(different.lines.join('\n')).toContain('`timeout` of m0 in config.yaml: set for all models alone');
    expect(different.lines.join('\n')).toContain('`stream_timeout` of m1 in config.yaml');
  });

  const codes = [408, 409, 429, 500, 502, 503, 504, 529];
  test.each([
    ['', { attempts: 2, backoff: '500ms', codes }],
    ['litellm_settings: { num_retries: 1 }', { attempts: 1, backoff: '500ms', codes }],
    ['router_settings: { num_retries: 3, retry_after: 2 }', { attempts: 3, backoff: '2s', codes }],
    ['router_settings: { num_retries: 0 }', undefined],
    [
      'router_settings: { num_retries: 0, retry_policy: { RateLimitErrorRetries: 4 } }',
      { attempts: 4, backoff: '500ms', codes: [429] },
    ],
    [
      'router_settings: { retry_policy: { RateLimitErrorRetries: 0 } }',
      { attempts: 2, backoff: '500ms', codes: codes.filter((code) => code !== 429) },
    ],
  ])('%s: calls are repeated as by LiteLLM', (text, expected) => {
    expect(retry(text)).toEqual(expected);
  });

  test.each([
    ['router_settings: { allowed_fails: 2, cooldown_time: 60 }', { duration: '60s', consecutiveFailures: 3 }],
    ['router_settings: { disable_cooldowns: true }', { healthThreshold: 0 }],
  ])('%s is when a model is left alone', (text, eviction) => {
    expect(settings(text).models).toMatchObject([{ name: 'a' }]);
    expect(settings(text).models[0]).not.toHaveProperty('health');
    const pair = read(`${models(`a: { model: openai/x, ${KEY} }`, `a: { model: openai/y, ${KEY} }`)}${text}`);
    const health = { unhealthyExpression: expect.stringContaining('404'), eviction };
    expect(pair.models).toMatchObject([{ health }, { health }]);
  });

  test.each([
    ['max_budget: 100, budget_duration: 30d', '100USD/month'],
    ['max_budget: 0.5, budget_duration: 1d', '0.5USD/day'],
    ['max_budget: 10', '10USD/total'],
  ])('%s is a budget', (text, limit) => {
    const found = settings(`litellm_settings: { ${text} }`);
    expect(found.policies['budgets']).toEqual([{ name: 'litellm', limit }]);
    expect(found.lines).toEqual([]);
  });
});

test.each([
  ['cache: true', { scope: 'shared' }, []],
  ['cache: true, cache_params: { type: local, ttl: 60 }', { scope: 'shared', ttl: '60s' }, []],
  [
    'cache: true, cache_params: { type: redis, host: h, namespace: n }',
    { scope: 'shared' },
    ['cache_params.host', 'cache_params.namespace', 'cache_params.type'],
  ],
  ['cache: true, cache_params: { mode: default_off }', undefined, ['cache_params.mode']],
  ['cache: true, cache_params: { type: qdrant-semantic }', undefined, ['cache_params.type']],
  ['cache: false', undefined, []],
])('%s is the cache of the models', (text, cache, left) => {
  const { models: found, lines } = read(
    `${models(`a: { model: openai/x, ${KEY} }`)}litellm_settings: { ${text} }`,
  );
  expect(found[0]?.['cache']).toEqual(cache);
  expect(lines.map((line) => /`litellm_settings\.([^`]*)`/.exec(line)?.[1]).toSorted()).toEqual(left);
});

test('of two files, the settings of all calls are those of the first', () => {
  const file = (budget: number): string =>
    `${models(`m${budget}: { model: openai/m${budget}, ${KEY}, input_cost_per_token: 0 }`)}litellm_settings: { max_budget: ${budget} }`;
  const found = read(file(1), file(2));
  expect(found.policies['budgets']).toEqual([{ name: 'litellm', limit: '1USD/total' }]);
  expect(found.lines).toEqual([
    'warning: `llm.policies.budgets` in config.yaml: that of another file is used',
    '`llm.policies.retry` in config.yaml: that of another file is used',
  ]);
});

test('lost limits and guardrails are warnings before all others, and no key is lost silently', () => {
  const { lines } = read(`model_list:
- model_name: a
  unknown_of_entry: 1
  litellm_params: { model: openai/x, ${KEY}, rpm: 1, max_budget: 2, unknown_of_params: 1, guardrails: [pii] }
  model_info: { unknown_of_info: 1 }
guardrails: [{ guardrail_name: pii }]
unknown_of_file: 1
litellm_settings:
  max_budget: 1
  budget_duration: 45d
  callbacks: [presidio, langfuse]
  default_team_settings: [{ team_id: x, max_budget: 3 }]
  drop_params: true
  cache: false
  cache_params: { type: redis }
  unknown_of_litellm: 1
  prometheus_initialize_budget_metrics: true
router_settings: { provider_budget_config: { openai: { budget_limit: 1 } }, unknown_of_router: 1, routing_strategy: usage-based-routing-v2, context_window_fallbacks: [{ a: [a] }] }
general_settings: { global_max_parallel_requests: 5, database_url: x, unknown_of_general: 1 }`);
  const firstOther = lines.findIndex((line) => !line.startsWith('warning: '));
  expect(lines.slice(firstOther).filter((line) => line.startsWith('warning: '))).toEqual([]);
  const names = (from: number, to?: number): string[] =>
    lines
      .slice(from, to)
      .map((line) => /`([^`]*)`/.exec(line)?.[1] ?? '')
      .toSorted();
  expect(names(0, firstOther)).toEqual(
    [
      ...['rpm', 'max_budget', 'guardrails', 'guardrails', 'general_settings.global_max_parallel_requests'],
      ...['litellm_settings.max_budget', 'litellm_settings.callbacks: presidio'],
      ...['litellm_settings.default_team_settings', 'router_settings.provider_budget_config'],
    ].toSorted(),
  );
  expect(names(firstOther)).toEqual(
    [
      ...['unknown_of_entry', 'unknown_of_params', 'model_info.unknown_of_info', 'unknown_of_file'],
      ...['litellm_settings.callbacks', 'litellm_settings.drop_params', 'litellm_settings.cache_params'],
      ...['litellm_settings.prometheus_initialize_budget_metrics'],
      ...['litellm_settings.unknown_of_litellm', 'router_settings.unknown_of_router'],
      ...['router_settings.routing_strategy', 'router_settings.context_window_fallbacks'],
      ...['general_settings.database_url', 'general_settings.unknown_of_general'],
    ].toSorted(),
  );
});

describe('guardrails', () => {
  const file = (guardrails: string, params = ''): string =>
    `{ model_list: [{ model_name: a, litellm_params: { model: openai/x${params} } }], guardrails: [${guardrails}] }`;
  const guardrail = (params: string): string => `{ guardrail_name: g, litellm_params: { ${params} } }`;
  const rejected = (rules: readonly object[]) => ({
    regex: { action: 'reject', rules },
    rejection: { status: 400 },
  });
  const scope = ['systemPrompt', 'messages', 'toolOutput'];

  test('patterns and words of litellm_content_filter are imported, before and after calls', () => {
    const filter =
      guardrail(`guardrail: litellm_content_filter, mode: [pre_call, post_call], default_on: true,
      patterns: [{ pattern_type: prebuilt, pattern_name: us_ssn, action: BLOCK }, { pattern_type: prebuilt, pattern_name: email, action: MASK },
        { pattern_type: regex, name: own, pattern: 'E-\\d+$', action: BLOCK }],
      blocked_words: [{ keyword: a.b, action: BLOCK, description: d }]`);
    const { policies, models: found, lines } = read(file(filter, ', guardrails: [g]'));
    const reject = rejected([{ builtin: 'ssn' }, { pattern: '(?i)E-\\d+$$' }, { pattern: '(?i)a\\.b' }]);
    const mask = { regex: { action: 'mask', rules: [{ builtin: 'email' }] } };
    expect(policies['guardrails']).toEqual({
      request: [
        { ...reject, scope },
        { ...mask, scope },
      ],
      response: [reject, mask],
    });
    expect(found[0]).not.toHaveProperty('guardrails');
    expect(lines).toEqual([
      "`patterns[2].name` of g in config.yaml: it describes it in LiteLLM's own lists",
      "`blocked_words[0].description` of g in config.yaml: it describes it in LiteLLM's own lists",
    ]);
  });

  test('a guardrail without default_on is one of the models that name it', () => {
    const moderation = guardrail(
      'guardrail: openai_moderation, mode: pre_call, api_base: "https://m.example/v1", model: os.environ/MODEL',
    );
    const guard = {
      openAIModeration: {
        model: `\${MODEL}`,
        baseUrl: 'https://m.example',
        policies: { backendAuth: { key: `\${OPENAI_API_KEY}` } },
      },
      rejection: { status: 400 },
    };
    const { policies, models: found } = read(file(moderation, ', guardrails: [g]'));
    expect(policies).not.toHaveProperty('guardrails');
    expect(found).toMatchObject([{ guardrails: { request: [guard] } }]);
  });

  test.each([
    [
      'guardrail: openai_moderation, mode: post_call, default_on: true',
      'mode: post_call',
      'checks requests only',
    ],
    ['guardrail: openai_moderation, mode: pre_call', 'guardrails', '`default_on: true`'],
    [
      'guardrail: bedrock, mode: pre_call, default_on: true',
      'guardrails',
      '`bedrockGuardrails` has its place',
    ],
    [
      'guardrail: litellm_content_filter, mode: pre_mcp_call, default_on: true',
      'mode: pre_mcp_call',
      '`mcp.policies',
    ],
    [
      'guardrail: litellm_content_filter, default_on: true, patterns: [{ pattern_type: prebuilt, pattern_name: ipv6, action: MASK }]',
      'patterns: ipv6',
      '`regex`',
    ],
    [
      'guardrail: litellm_content_filter, default_on: true, patterns: [{ pattern_type: regex, pattern: "(?<!x)y", action: MASK }]',
      'patterns: (?<!x)y',
      'RE2',
    ],
  ])('of %s, a warning names what is not imported, and what has its place', (params, what, reason) => {
    const { policies, lines } = read(file(guardrail(params)));
    expect(policies).not.toHaveProperty('guardrails');
    expect(lines).toEqual([expect.stringContaining(`warning: \`${what}\` of g in config.yaml: `)]);
    expect(lines[0]).toContain(reason);
  });
});

/** A file with a key that nobody knows in each of its objects. Those of `whole` are passed on as they are. */
function withUnknownKeys(value: unknown, whole: ReadonlySet<string>, names: string[]): unknown {
  if (Array.isArray(value)) return value.map((each) => withUnknownKeys(each, whole, names));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(
    ([key, each]) => [key, whole.has(key) ? each : withUnknownKeys(each, whole, names)] as const,
  );
  const name = `unknown_${names.length}`;
  names.push(name);
  return Object.fromEntries([...entries, [name, 1]]);
}

test('a key that nobody knows is named, in whichever object of the file it is', () => {
  const file = parse(`environment_variables: { OPENAI_API_KEY: sk-1, LANGFUSE_HOST: h }
model_list:
- { model_name: a, litellm_params: { model: openai/x, model_info: { id: i }, extra_body: { b: 1 }, extra_headers: { h: v } }, model_info: { mode: chat } }
- { model_name: a, litellm_params: { model: azure/y, api_base: "https://h.example", litellm_credential_name: mine } }
- { model_name: b, litellm_params: { model: bedrock/z, response_format: { type: json_object } } }
- { model_name: all, litellm_params: { model: "*" } }
credential_list: [{ credential_name: mine, credential_values: { api_key: k } }]
general_settings: { master_key: sk-1 }
litellm_settings: { max_budget: 5, budget_duration: 1d, cache: true, cache_params: { type: local }, fallbacks: [{ a: [{ model: b }] }] }
guardrails:
- { guardrail_name: f, litellm_params: { guardrail: litellm_content_filter, default_on: true, patterns: [{ pattern_type: prebuilt, pattern_name: email, action: MASK }], blocked_words: [{ keyword: k, action: BLOCK }] } }
- { guardrail_name: o, litellm_params: { guardrail: openai_moderation, default_on: true } }
router_settings: { timeout: 3, retry_policy: { TimeoutErrorRetries: 1 }, model_group_alias: { c: { model: a } } }
mcp_servers: { remote: { url: "https://a.example/mcp", static_headers: { h: v } }, local: { command: node, env: { A: b } } }`);
  const names: string[] = [];
  const whole = new Set(['extra_body', 'extra_headers', 'response_format', 'static_headers', 'env']);
  // An alias, an entry of `fallbacks` and a server with such a name are no unknown keys.
  const text = JSON.stringify(withUnknownKeys(file, whole, names));
  const { lines } = read(text);
  expect(names.filter((name) => !lines.some((line) => new RegExp(`\\b${name}\\b`).test(line)))).toEqual([]);
  expect(names.length).toBeGreaterThan(20);
});

test('what is ignored rightly is named with its reason; a misspelt section and made-up answers are warnings', () => {
  const { lines } = read(`model_list:
- { model_name: a, litellm_params: { model: openai/x, weight: 3, mock_response: hi }, model_info: { id: i, mode: chat } }
litellm_settings: { set_verbose: false }
router_setings: { num_retries: 2 }`);
  expect(lines.map((line) => line.replaceAll(' in config.yaml', '')).toSorted()).toEqual([
    '`litellm_settings.set_verbose`: switched off',
    "`model_info.id` of a: it describes it in LiteLLM's own lists",
    "`model_info.mode` of a: it describes it in LiteLLM's own lists",
    '`weight` of a: there is no other deployment of this name',
    'warning: `mock_response` of a: `provider: echo` answers without a provider',
    'warning: `router_setings`: nothing of it was read: write `router_settings`',
  ]);
});

test('a member of another type than the one that is read is named', () => {
  const params =
    'model: openai/x, guardrails: 5, extra_headers: [1], headers: h, rpm: many, order: [1], timeout: os.environ/T';
  const { lines } = read(
    `{ model_list: [{ model_name: a, litellm_params: { ${params} }, model_info: i }], guardrails: { a: { b: 1 } }, mcp_servers: 5,` +
      ' router_settings: [timeout], litellm_settings: { cache: true, cache_params: 5 } }',
  );
  const other = lines.filter((line) => line.includes('another type than expected'));
  expect(other.map((line) => line.replace(/ in config.yaml: .*/, '')).toSorted()).toEqual([
    '`extra_headers` of a',
    '`headers` of a',
    '`litellm_settings.cache_params`',
    '`mcp_servers`',
    '`model_info` of a',
    '`order` of a',
    '`router_settings`',
    'warning: `guardrails`',
    'warning: `guardrails` of a',
    'warning: `rpm` of a',
  ]);
});

test.each([
  ['router_settings: { timeout: os.environ/T }', '`router_settings.timeout`'],
  [
    'router_settings: { num_retries: 0 }, litellm_settings: { num_retries: 2 }',
    '`litellm_settings.num_retries`',
  ],
  ['general_settings: { master_key: [a] }', 'warning: `general_settings.master_key`'],
])('%s is named, because it has no effect', (text, line) => {
  const { lines } = read(`{ model_list: [{ model_name: a, litellm_params: { model: openai/x } }], ${text} }`);
  expect(lines).toEqual([expect.stringContaining(line)]);
});

test('MCP servers with spec_path are APIs with an OpenAPI document, if they have an address', () => {
  const { targets, lines } = read(`model_list: [{ model_name: a, litellm_params: { model: openai/x } }]
mcp_servers:
  api: { url: "https://x.example/v2", spec_path: s.json, auth_type: bearer_token, auth_value: os.environ/T, transport: http }
  far: { url: "https://x.example/v3", spec_path: "https://x.example/s.json" }
  none: { spec_path: s.json }`);
  expect(targets.map(({ value }) => value)).toEqual([
    {
      name: 'api',
      openapi: { host: 'https://x.example/v2', schema: { file: 's.json' } },
      policies: { backendAuth: { key: `\${T}` } },
    },
    {
      name: 'far',
      openapi: { host: 'https://x.example/v3', schema: { url: 'https://x.example/s.json' } },
    },
  ]);
  expect(lines).toEqual([
    expect.stringMatching(/^none in /),
    expect.stringMatching(/^`spec_path` of none in config.yaml: the address of the API is missing/),
  ]);
});

test('limits of who may call what are imported, or are warnings', () => {
  const {
    targets,
    lines,
    models: found,
  } = read(`model_list:
- model_name: a
  litellm_params: { model: openai/x, ${KEY} }
  model_info: { access_groups: [beta] }
- model_name: b
  litellm_params: { model: openai/y, ${KEY} }
  model_info: { blocked: true }
general_settings: { allowed_ips: [10.0.0.1], allowed_routes: [/chat], enable_jwt_auth: true, custom_auth: a.b }
mcp_servers:
  files: { command: node, args: [a.js], allowed_tools: [files-read, list, a-files-b], disallowed_tools: [write], allowed_params: { read: [path] }, available_on_public_internet: false }
  odd: { command: node, args: [b.js], allowed_tools: read }`);
  expect(targets[0]?.value['tools']).toEqual({ include: ['read', 'list', 'a-files-b'], exclude: ['write'] });
  expect(found).toHaveLength(1);
  const warnings = lines.flatMap((line) => /^warning: `?([\w.]+)/.exec(line)?.[1] ?? []).toSorted();
  expect(warnings).toEqual(
    [
      ...[
        'allowed_params',
        'allowed_tools',
        'available_on_public_internet',
        'b',
        'model_info.access_groups',
        'general_settings.allowed_ips',
      ],
      ...[
        'general_settings.allowed_routes',
        'general_settings.enable_jwt_auth',
        'general_settings.custom_auth',
      ],
    ].toSorted(),
  );
});

test('merge keys are read, and keys of `keys create` are accepted where there is a database', async () => {
  await using folder = await temporaryFolder();
  const cwd = folder.path;
  writeFileSync(
    join(cwd, 'config.yaml'),
    `model_list:
- model_name: one
  litellm_params: &private
    model: openai/qwen
    api_base: http://10.1.2.3:8000/v1
    api_key: os.environ/PRIVATE_KEY
- model_name: two
  litellm_params: { <<: *private, model: openai/llama }
general_settings: { master_key: sk-of-the-first }
litellm_settings: { max_budget: 5, budget_duration: 1d }
guardrails: [{ guardrail_name: g, litellm_params: { guardrail: openai_moderation, mode: pre_call, default_on: true, api_base: "ftp://x" } }]
general_settings: { master_key: os.environ/MASTER_KEY }
`,
  );
  const made = await cli(['init', 'out', '--yes', '--from', 'config.yaml'], { cwd, env: { HOME: cwd } });
  expect([made.code, made.stderr]).toEqual([0, '']);
  const { llm } = parse(readFileSync(join(cwd, 'out/gateway.yaml'), 'utf8'));
  const params = { apiKey: '${PRIVATE_KEY}', baseUrl: 'http://10.1.2.3:8000/v1' };
  expect(llm.models).toMatchObject([
    { name: 'one', params: { ...params, model: 'qwen' } },
    { name: 'two', params: { ...params, model: 'llama' } },
  ]);
  expect(llm.policies.apiKey).toEqual({ mode: 'strict', keys: [{ key: '${MASTER_KEY}' }], virtualKeys: {} });
  expect(made.stdout).toContain(
    'warning: no price is known for qwen (openai), llama (openai): the budget refuses',
  );
  const validated = await cli(['config', 'validate', '-f', 'out/gateway.yaml'], { cwd, env: { HOME: cwd } });
  expect(validated.stdout + validated.stderr).not.toContain('error[');
});
