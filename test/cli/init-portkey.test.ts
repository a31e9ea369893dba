import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';

/** What `agctl init` makes of a config object. Its result must be valid. */
async function imported(config: object, env: Record<string, string> = {}) {
  await using folder = await temporaryFolder();
  const cwd = folder.path;
  writeFileSync(join(cwd, 'portkey.json'), JSON.stringify(config));
  const options = { cwd, env: { HOME: cwd, ...env } };
  const made = await cli(['init', '--yes', '--from', 'portkey.json'], options);
  const [, nothing] = /nothing could be imported: (.*)/.exec(made.stderr) ?? [];
  if (nothing !== undefined) return { text: '', printed: made.stderr, llm: { models: [] }, lines: [nothing] };
  expect([made.code, made.stderr]).toEqual([0, '']);
  const text = readFileSync(join(cwd, 'gateway.yaml'), 'utf8');
  const validated = await cli(['config', 'validate', '-f', 'gateway.yaml'], options);
  expect([validated.code, validated.stdout + validated.stderr]).toEqual([
    0,
    expect.not.stringContaining('error'),
  ]);
  const left = /\nnot imported\n([\s\S]*?)\n\n/.exec(made.stdout)?.[1] ?? '';
  return {
    text,
    printed: made.stdout,
    llm: parse(text).llm,
    lines: left.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()])),
  };
}

const openai = { provider: 'openai', api_key: 'sk-first-key' };
const claude = { provider: 'anthropic', api_key: 'sk-second-key', override_params: { model: 'claude-x' } };

describe('one target', () => {
  test('a provider takes every model name, with its key as a reference', async () => {
    const { llm, text, lines, printed } = await imported(openai);
    expect(llm).toEqual({
      models: [
        {
          ...{ name: '*', provider: 'oaiCompat', params: { apiKey: `\${OPENAI_API_KEY}` } },
          requestHeaders: { remove: expect.arrayContaining(['x-portkey-config', 'x-portkey-virtual-key']) },
        },
      ],
    });
    expect(text).not.toContain('sk-first-key');
    expect(printed).toContain('OPENAI_API_KEY');
    expect(lines).toEqual([]);
  });

  test('`override_params` replace the model and members of the request', async () => {
    const config = {
      strategy: { mode: 'single' },
      targets: [{ ...openai, override_params: { model: 'gpt-x', temperature: 0, stop: ['$x'] } }],
    };
    const { llm, lines } = await imported(config);
    expect(llm.models).toMatchObject([
      { name: '*', params: { model: 'gpt-x' }, overrides: { temperature: 0, stop: ['$$x'] } },
    ]);
    expect(llm.models[0].overrides).not.toHaveProperty('model');
    expect(lines).toEqual([]);
  });

  test.each([
    ['openai', 'http://h/v1', { provider: 'oaiCompat', params: { baseUrl: 'http://h/v1' } }],
    ['anthropic', 'http://h/v1/', { provider: 'anthropic', params: { baseUrl: 'http://h/v1' } }],
    ['ollama', 'http://h', { provider: 'ollama', params: { baseUrl: 'http://h/v1' } }],
    ['together-ai', 'http://h', { provider: 'togetherai', params: { baseUrl: 'http://h/v1' } }],
    ['azure-openai', 'http://h/openai', { provider: 'azure', params: { baseUrl: 'http://h/openai/v1' } }],
    ['google', 'http://h', { provider: 'gemini', params: { baseUrl: 'http://h/v1beta' } }],
  ])('%s has the address of `custom_host`', async (provider, host, model) => {
    const { llm } = await imported({ provider, api_key: 'k', custom_host: host });
    expect(llm.models).toMatchObject([model]);
  });

  test.each([
    [
      {
        provider: 'azure-openai',
        api_key: 'k',
        resource_name: 'eu',
        deployment_id: 'dep',
        api_version: '2024-10-21',
      },
      { provider: 'azure', params: { azureResourceName: 'eu', model: 'dep', azureApiVersion: '2024-10-21' } },
    ],
    [
      {
        provider: 'bedrock',
        aws_access_key_id: 'AKIA0',
        aws_secret_access_key: 'secret-1',
        aws_region: 'eu-west-1',
      },
      {
        provider: 'bedrock',
        params: { awsRegion: 'eu-west-1' },
        auth: {
          aws: {
            accessKeyId: `\${BEDROCK_AWS_ACCESS_KEY_ID}`,
            secretAccessKey: `\${BEDROCK_AWS_SECRET_ACCESS_KEY}`,
          },
        },
      },
    ],
    [
      { provider: 'vertex-ai', vertex_project_id: 'p', vertex_region: 'us' },
      { provider: 'vertex', params: { vertexProject: 'p', vertexRegion: 'us' } },
    ],
    [
      { provider: 'openai', api_key: 'k', openai_organization: 'o', openai_project: 'p' },
      {
        provider: 'oaiCompat',
        requestHeaders: { set: { 'openai-organization': 'o', 'openai-project': 'p' } },
      },
    ],
  ])('settings of a provider: %j', async (config, model) => {
    const { llm, lines, text } = await imported(config);
    expect(llm.models).toMatchObject([model]);
    expect(text).not.toContain('secret-1');
    expect(lines).toEqual([]);
  });

  test('a virtual key is a variable to fill in, and its provider is that of its name', async () => {
    const { llm, lines, printed } = await imported({ virtual_key: 'anthropic-prod-1a2b' });
    expect(llm.models).toMatchObject([
      { provider: 'anthropic', params: { apiKey: `\${ANTHROPIC_PROD_1A2B}` } },
    ]);
    expect(printed).toContain('fill in: ANTHROPIC_PROD_1A2B');
    expect(lines).toEqual([
      expect.stringMatching(/^`virtual_key` of .*ANTHROPIC_PROD_1A2B.*`anthropic` by its name/),
    ]);
    const slug = await imported({ provider: '@openai-x', override_params: { model: '@openai-x/gpt-x' } });
    expect(slug.llm.models).toMatchObject([
      { provider: 'oaiCompat', params: { apiKey: `\${OPENAI_X}`, model: 'gpt-x' } },
    ]);
    expect((await imported({ virtual_key: 'mine' })).lines).toEqual([
      expect.stringContaining('which provider the virtual key `mine` is of'),
    ]);
  });
});

test('two keys of one provider, and names of targets that patterns do not have', async () => {
  const targets = [openai, { ...openai, api_key: 'sk-other', name: 'a/b *' }];
  const { llm, text } = await imported({ strategy: { mode: 'loadbalance' }, targets });
  expect(llm.models).toMatchObject([
    { name: 'openai/*', params: { apiKey: `\${TARGETS_0_OPENAI_API_KEY}` } },
    { name: 'a-b/*', params: { apiKey: `\${TARGETS_1_OPENAI_API_KEY}` } },
  ]);
  expect(text).not.toContain('sk-');
});

test('a token of Google is not lost silently', async () => {
  const config = { provider: 'vertex-ai', api_key: 'ya29', vertex_project_id: 'p', vertex_region: 'us' };
  expect((await imported(config)).lines).toEqual([expect.stringMatching(/^`api_key` of vertex-ai/)]);
});

test.each([null, -1, 'x*', [null], { a: {} }].map((odd) => [JSON.stringify(odd), odd]))(
  'init does not fail on %s in any place',
  async (_, odd) => {
    const members = {
      ...{ provider: odd, api_key: odd, virtual_key: odd, override_params: odd, retry: odd, cache: odd },
      ...{ request_timeout: odd, custom_host: odd, weight: odd, name: odd, forward_headers: odd },
      ...{ input_guardrails: odd, before_request_hooks: odd, output_guardrails: [odd], aws_region: odd },
    };
    const deeper = {
      ...{ retry: { attempts: odd, on_status_codes: odd }, cache: { mode: 'simple', max_age: odd } },
      override_params: { model: odd, seed: odd },
      input_guardrails: [
        { 'default.regexMatch': odd, deny: true },
        { deny: true, checks: odd },
        { deny: true, checks: [odd, { id: odd, parameters: odd }] },
        { 'default.contains': { operator: 'none', words: odd }, deny: true },
      ],
    };
    const spoiled = Object.keys(members).map((key) => ({ ...openai, ...Object.fromEntries([[key, odd]]) }));
    const targets = [...spoiled, { ...openai, ...deeper }, odd, members, openai];
    for (const mode of ['fallback', 'conditional'])
      for (const more of [{}, { on_status_codes: odd, conditions: odd, default: odd }]) {
        const { llm } = await imported({ strategy: { mode, ...more }, targets, retry: odd, cache: odd });
        if (mode === 'fallback') expect(llm.models.length).toBeGreaterThan(2);
      }
  },
);

describe('several targets', () => {
  test('`fallback`: targets in their order after any failure, for every name; none is left alone', async () => {
    const { llm, lines } = await imported({ strategy: { mode: 'fallback' }, targets: [openai, claude] });
    const health = { unhealthyExpression: 'response.code >= 300', eviction: { healthThreshold: 0 } };
    expect(llm.models).toMatchObject([
      { name: 'openai/*', visibility: 'internal', params: { model: '*' }, health },
      { name: 'anthropic/*', visibility: 'internal', params: { model: 'claude-x' }, health },
    ]);
    const targets = [
      { model: 'openai/*', priority: 0 },
      { model: 'anthropic/*', priority: 1 },
    ];
    expect(llm.virtualModels).toEqual([{ name: '*', routing: { failover: { targets } } }]);
    expect(lines).toEqual([]);
  });

  test('`on_status_codes` of a fallback are the failures', async () => {
    const strategy = { mode: 'fallback', on_status_codes: [429, 500] };
    const { llm, lines } = await imported({ strategy, targets: [openai, claude] });
    expect(llm.models[0].health.unhealthyExpression).toBe('response.code in [429, 500]');
    expect(lines).toEqual([expect.stringMatching(/`strategy.on_status_codes`.*no answer/)]);
  });

  test('`loadbalance`: by weight, without another target after a failure', async () => {
    const targets = [
      { ...openai, weight: 0.75 },
      { ...openai, name: 'spare', weight: 0.25 },
      {
        strategy: { mode: 'loadbalance' },
        weight: 1,
        targets: [claude, { ...claude, name: 'c', weight: 3 }],
      },
    ];
    const { llm, lines } = await imported({ strategy: { mode: 'loadbalance' }, targets });
    expect(llm.models[0]).not.toHaveProperty('health');
    expect(llm.virtualModels[0].routing.weighted.targets).toEqual([
      { model: 'openai/*', weight: 1000 },
      { model: 'spare/*', weight: 333 },
      { model: 'anthropic/*', weight: 333 },
      { model: 'c/*', weight: 1000 },
    ]);
    expect(lines).toEqual([]);
  });

  test('a group inside a fallback is one level, whose own next targets are said to be tried first', async () => {
    const group = { strategy: { mode: 'loadbalance' }, targets: [openai, { ...openai, weight: 2 }] };
    const { llm, lines } = await imported({ strategy: { mode: 'fallback' }, targets: [group, claude] });
    expect(llm.virtualModels[0].routing.failover.targets).toEqual([
      { model: 'openai/*', priority: 0, weight: 1 },
      { model: 'openai-2/*', priority: 0, weight: 2 },
      { model: 'anthropic/*', priority: 1 },
    ]);
    expect(lines).toEqual([expect.stringContaining('the others of its group are tried')]);
  });

  test('`conditional`: conditions are expressions over the request and the metadata of clients', async () => {
    const conditions = [
      [{ 'metadata.plan': { $eq: 'paid' }, 'params.max_tokens': { $gt: 100 } }, 'one'],
      [{ $or: [{ 'metadata.plan': 'free' }, { 'params.model': { $in: ['$a', 'b'] } }] }, 'two'],
      [{ 'url.pathname': { $regex: '^/v1' } }, 'one'],
      [{ 'metadata.x': { $near: 1 } }, 'two'],
    ].map(([query, name]) =>
      Object.fromEntries([
        ['query', query],
        ['then', name],
      ]),
    );
    const targets = [
      { ...openai, name: 'one' },
      { ...claude, name: 'two' },
    ];
    const strategy = { mode: 'conditional', conditions, default: 'two' };
    const { llm, lines } = await imported({ strategy, targets });
    const found = llm.virtualModels[0].routing.conditional.targets;
    expect(found.map(({ model }: { model: string }) => model)).toEqual(['one/*', 'two/*', 'one/*', 'two/*']);
    expect(found[0].when).toMatch(/x-portkey-metadata.*"paid".*&&.*llmRequest.*> 100/);
    expect(found[1].when).toContain('"$$a"');
    expect(found[3]).not.toHaveProperty('when');
    expect(lines).toEqual([expect.stringContaining('`$near`')]);
  });

  test('a target that cannot be imported is left out of the others', async () => {
    const targets = [{ provider: 'stability-ai', api_key: 'k' }, openai, claude];
    const { llm, lines } = await imported({ strategy: { mode: 'fallback' }, targets });
    expect(llm.virtualModels[0].routing.failover.targets).toHaveLength(2);
    expect(lines).toEqual([
      'warning: targets[0] in portkey.json: the provider `stability-ai` has no counterpart',
    ]);
  });

  test('no key is asked for that only a target needs which was left out', async () => {
    const targets = [{ ...openai, custom_host: 'not a url', api_key: 'sk-third-key' }, claude];
    const { llm, lines, printed } = await imported({ strategy: { mode: 'fallback' }, targets });
    expect(JSON.stringify(llm)).not.toContain('OPENAI_API_KEY');
    expect(lines[0]).toMatch(/^warning: openai\/\* in /);
    expect(printed).toContain('ANTHROPIC_API_KEY');
    expect(printed).not.toContain('OPENAI_API_KEY');
  });
});

describe('settings of calls', () => {
  test('retries, timeouts and the cache are kept, and targets inherit them', async () => {
    const { llm, lines } = await imported({
      strategy: { mode: 'loadbalance' },
      retry: { attempts: 3, on_status_codes: [429] },
      cache: { mode: 'simple', max_age: 60 },
      request_timeout: 2500,
      override_params: { seed: 1 },
      targets: [openai, claude],
    });
    expect(llm.policies).toEqual({
      timeout: { backendRequestTimeout: '2500ms' },
      retry: { attempts: 3, backoff: '1s', codes: [429] },
    });
    for (const model of llm.models)
      expect(model).toMatchObject({ cache: { scope: 'shared', ttl: '60s' }, overrides: { seed: 1 } });
    expect(lines).toEqual([]);
  });

  test('what has no counterpart is one line each, also keys that nobody knows', async () => {
    const { llm, lines } = await imported({
      strategy: { mode: 'fallback', cb_config: { failure_threshold: 1 } },
      retry: { attempts: 2, use_retry_after_header: true },
      cache: { mode: 'semantic', max_age: 60 },
      metadata: { a: 1 },
      targets: [
        { ...openai, request_timeout: 1000, invented: 1, forward_headers: ['x-a'] },
        { ...claude, request_timeout: 2000 },
      ],
    });
    expect(llm.policies).toMatchObject({
      timeout: { backendRequestTimeout: '2s' },
      retry: { codes: [429, 500, 502, 503, 504] },
    });
    expect(llm.models[0].cache).toEqual({ scope: 'shared', ttl: '60s' });
    const keys = lines.map((line) => /^`([^`]+)`/.exec(line)?.[1]);
    expect(new Set(keys)).toEqual(
      new Set([
        ...['strategy.cb_config', 'retry.use_retry_after_header', 'retry', 'cache.mode', 'metadata'],
        ...['request_timeout', 'invented', 'forward_headers'],
      ]),
    );
  });
});

describe('guardrails', () => {
  const reject = (pattern: string): object => ({
    regex: { action: 'reject', rules: [{ pattern }] },
    rejection: { status: 446 },
  });

  test('patterns and words that must not occur reject a call, on each side', async () => {
    const { llm, lines } = await imported({
      ...openai,
      before_request_hooks: [
        {
          type: 'guardrail',
          deny: true,
          checks: [{ id: 'default.regexMatch', parameters: { rule: 'sk-[a-z]+', not: true } }],
        },
      ],
      output_guardrails: [{ 'default.contains': { operator: 'none', words: ['a.b', 'c'] }, deny: true }],
    });
    expect(llm.models[0].guardrails).toEqual({
      request: [reject('sk-[a-z]+')],
      response: [
        {
          regex: { action: 'reject', rules: [{ pattern: 'a\\.b' }, { pattern: 'c' }] },
          rejection: { status: 446 },
        },
      ],
    });
    expect(lines).toEqual([]);
  });

  test('checks without a counterpart are warnings, before other lines', async () => {
    const { llm, lines } = await imported({
      ...openai,
      invented: 1,
      input_guardrails: [
        'pg-platform-1',
        { 'default.regexMatch': { rule: 'must' }, deny: true },
        { 'default.regexMatch': { rule: '(?=x)', not: true }, deny: true },
        { 'default.contains': { operator: 'none', words: ['x'] }, deny: false },
        { 'default.jwt': { jwksUri: 'https://x.example' }, deny: true },
      ],
    });
    expect(llm.models[0]).not.toHaveProperty('guardrails');
    expect(lines.map((line) => line.startsWith('warning: '))).toEqual([
      ...[true, true, true, true, true, false],
    ]);
    const all = lines.join('\n');
    for (const part of ['pg-platform-1', 'has to match', '(?=x)', 'deny', 'default.jwt'])
      expect(all).toContain(part);
  });
});
