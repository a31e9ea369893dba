import { describe, expect, test } from 'vitest';
import { azureIdentity } from '../../kit/azure-identity.ts';
import { environment } from '../../kit/environment.ts';
import { WIRES } from '../../kit/llm-events.ts';
import {
  answering,
  bodyOf,
  CHAT,
  chat,
  completion,
  errorOf,
  llmGateway,
  llmProvider,
  streaming,
} from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';
import { type HttpUpstream, httpUpstream, refusingPort } from '../../kit/upstream.ts';

const REJECTED = { status: 418, body: 'not here' };
const NO_CREDENTIALS = {
  AWS_ACCESS_KEY_ID: undefined,
  AWS_SECRET_ACCESS_KEY: undefined,
  AWS_SESSION_TOKEN: undefined,
  AWS_PROFILE: undefined,
  AWS_SHARED_CREDENTIALS_FILE: '/dev/null/none',
  AWS_CONFIG_FILE: '/dev/null/none',
  AWS_EC2_METADATA_DISABLED: 'true',
  GOOGLE_APPLICATION_CREDENTIALS: undefined,
  CLOUDSDK_CONFIG: '/dev/null/none',
  HOME: '/dev/null/none',
};
const AWS_KEYS = { ...NO_CREDENTIALS, AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE', AWS_SECRET_ACCESS_KEY: 'secret' };

/** The metadata server of Google Cloud, with one token. */
function metadataServer(): Promise<HttpUpstream> {
  return httpUpstream((_, response, { target }) => {
    response.writeHead(200, { 'content-type': 'application/json', 'metadata-flavor': 'Google' });
    const token = { access_token: 'ya29.token', expires_in: 3_600, token_type: 'Bearer' };
    response.end(target.includes('/token') ? JSON.stringify(token) : 'default');
  });
}

/** What the services are asked, each with some of these members. */
interface Question {
  readonly input: string[];
  readonly content: { text: { text: string } }[];
  readonly text: string;
}

/** A service that answers each request with what `answer` returns for its body. */
const service = (answer: (body: Question, target: string) => unknown): Promise<HttpUpstream> =>
  httpUpstream((_, response, { body, target }) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify(answer(JSON.parse(Buffer.from(body, 'latin1').toString('utf8')) as Question, target)),
    );
  });

const kinds = {
  openAIModeration: ({ address }: { address: string }) => ({
    openAIModeration: {
      baseUrl: `http://${address}`,
      policies: { backendAuth: { key: 'moderation-key' } },
    },
  }),
  bedrockGuardrails: ({ address }: { address: string }) => ({
    bedrockGuardrails: {
      guardrailIdentifier: 'gr-1',
      guardrailVersion: 'DRAFT',
      region: 'eu-west-1',
      baseUrl: `http://${address}`,
      policies: { backendAuth: { aws: {} } },
    },
  }),
  googleModelArmor: ({ address }: { address: string }) => ({
    googleModelArmor: { templateId: 'tpl', projectId: 'proj', baseUrl: `http://${address}` },
  }),
  azureContentSafety: ({ address }: { address: string }, more: object = {}) => ({
    azureContentSafety: {
      endpoint: `http://${address}`,
      policies: { backendAuth: { key: 'azure-key' } },
      analyzeText: {},
      ...more,
    },
  }),
};

const say = (content: string) => ({
  ...CHAT,
  messages: [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content },
    { role: 'tool', tool_call_id: 'c', content: 'result of a tool' },
  ],
});

test('openAIModeration rejects a request with a flagged text, and sends texts and model', async () => {
  await using provider = await llmProvider();
  await using moderation = await service(({ input }) => ({
    id: 'modr-1',
    model: 'omni-moderation-latest',
    results: input.map((text) => ({ flagged: text.includes('bad') })),
  }));
  const item = { ...kinds.openAIModeration(moderation), rejection: REJECTED };
  await using served = await llmGateway(provider, { model: { guardrails: { request: [item] } } });
  expect((await chat(served, say('good'), { authorization: 'Bearer client' })).status).toBe(200);
  expect(bodyOf(moderation)).toEqual({ model: 'omni-moderation-latest', input: ['Be brief.', 'good'] });
  expect(moderation.received[0]).toMatchObject({
    method: 'POST',
    target: '/v1/moderations',
    headers: { authorization: 'Bearer moderation-key', host: moderation.address },
  });
  expect(await chat(served, say('bad'))).toMatchObject({ status: 418, text: 'not here' });
  expect(provider.received).toHaveLength(1);
  expect(await served.accessLine(2)).toMatchObject({
    error: 'request rejected by openAIModeration guardrail',
  });
});

test('openAIModeration rejects a request if the service does not answer about every text', async () => {
  await using provider = await llmProvider();
  await using moderation = await service(() => ({ results: [{ flagged: false }] }));
  const item = kinds.openAIModeration(moderation);
  await using served = await llmGateway(provider, { model: { guardrails: { request: [item] } } });
  expect((await chat(served, say('bad'))).status).toBe(503);
  expect(provider.received).toEqual([]);
});

describe('bedrockGuardrails', () => {
  const apply = () =>
    service(({ content }) => {
      const texts = content.map(({ text }) => text.text);
      const named = (action: string) => ({
        action: 'GUARDRAIL_INTERVENED',
        assessments: [
          { sensitiveInformationPolicy: { piiEntities: [{ type: 'NAME', match: 'Ann', action }] } },
        ],
      });
      if (texts.some((text) => text.includes('bad')))
        return { ...named('BLOCKED'), outputs: [{ text: 'blocked by policy' }] };
      if (!texts.some((text) => text.includes('Ann')))
        return { action: 'NONE', outputs: [], assessments: [] };
      return {
        ...named('ANONYMIZED'),
        outputs: texts.map((text) => ({ text: text.replaceAll('Ann', '{NAME}') })),
      };
    });

  test('bedrockGuardrails masks and rejects requests, with signed calls and the texts in scope', async () => {
    using _env = environment(AWS_KEYS);
    await using provider = await llmProvider();
    await using bedrock = await apply();
    const item = {
      ...kinds.bedrockGuardrails(bedrock),
      scope: ['messages', 'toolOutput'],
      rejection: REJECTED,
    };
    await using served = await llmGateway(provider, { model: { guardrails: { request: [item] } } });
    expect((await chat(served, say('I am Ann'))).status).toBe(200);
    expect(bodyOf(provider)['messages']).toMatchObject([
      { content: 'Be brief.' },
      { content: 'I am {NAME}' },
      { content: 'result of a tool' },
    ]);
    expect(bodyOf(bedrock)).toEqual({
      source: 'INPUT',
      content: [{ text: { text: 'I am Ann' } }, { text: { text: 'result of a tool' } }],
    });
    expect(bedrock.received[0]?.target).toBe('/guardrail/gr-1/version/DRAFT/apply');
    expect(bedrock.received[0]?.headers['authorization']).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/eu-west-1\/bedrock\/aws4_request, SignedHeaders=/,
    );
    expect(await chat(served, say('bad'))).toMatchObject({ status: 418, text: 'not here' });
    expect(provider.received).toHaveLength(1);
  });

  test('bedrockGuardrails masks streams, and rejects them with an error event', async () => {
    using _env = environment(AWS_KEYS);
    let parts = ['I am ', 'An', 'n.'];
    await using provider = await llmProvider((...all) =>
      streaming((response) => response.end(WIRES.messages.events('content', parts).join('')))(...all),
    );
    await using bedrock = await apply();
    const response = [{ ...kinds.bedrockGuardrails(bedrock), rejection: REJECTED }];
    await using served = await llmGateway(provider, { model: { guardrails: { response } } });
    const stream = async () => {
      const body = JSON.stringify(WIRES.messages.request);
      return (await send(served.url + WIRES.messages.path, { method: 'POST', body })).text;
    };
    expect(WIRES.messages.text('content', await stream())).toBe('I am {NAME}.');
    expect(bodyOf(bedrock)).toMatchObject({ source: 'OUTPUT' });
    parts = ['ba', 'd'];
    expect(await stream()).toMatch(/^event: error\n.*not here/m);
  });

  test('bedrockGuardrails that intervenes without texts rejects the call', async () => {
    using _env = environment(AWS_KEYS);
    await using provider = await llmProvider();
    await using bedrock = await service(() => ({ action: 'GUARDRAIL_INTERVENED', outputs: [] }));
    const request = [{ ...kinds.bedrockGuardrails(bedrock), rejection: REJECTED }];
    await using served = await llmGateway(provider, { model: { guardrails: { request } } });
    expect(await chat(served, say('good'))).toMatchObject({ status: 418, text: 'not here' });
  });

  test('bedrockGuardrails that returns another number of texts fails the call', async () => {
    using _env = environment(AWS_KEYS);
    await using provider = await llmProvider();
    await using bedrock = await service(() => ({ action: 'GUARDRAIL_INTERVENED', outputs: [{ text: 'x' }] }));
    const request = [kinds.bedrockGuardrails(bedrock)];
    await using served = await llmGateway(provider, { model: { guardrails: { request } } });
    expect((await chat(served, say('good'))).status).toBe(503);
  });
});

describe('googleModelArmor', () => {
  const found = (filterMatchState: string, invocationResult = 'SUCCESS') => ({
    sanitizationResult: { filterMatchState, invocationResult, filterResults: {} },
  });

  test('googleModelArmor rejects requests and responses with a match', async () => {
    await using metadata = await metadataServer();
    using _env = environment({
      ...NO_CREDENTIALS,
      GCE_METADATA_HOST: metadata.address,
      METADATA_SERVER_DETECTION: 'assume-present',
    });
    let answer = 'good';
    await using provider = await llmProvider((...all) => answering(completion(answer))(...all));
    await using armor = await service((body) =>
      found(JSON.stringify(body).includes('bad') ? 'MATCH_FOUND' : 'NO_MATCH_FOUND'),
    );
    const item = { ...kinds.googleModelArmor(armor), rejection: REJECTED };
    await using served = await llmGateway(provider, {
      model: { guardrails: { request: [item], response: [item] } },
    });
    expect((await chat(served, say('good'))).status).toBe(200);
    const path = '/v1/projects/proj/locations/us-central1/templates/tpl';
    expect(armor.received.map(({ target }) => target)).toEqual([
      `${path}:sanitizeUserPrompt`,
      `${path}:sanitizeModelResponse`,
    ]);
    expect(bodyOf(armor, 0)).toEqual({ user_prompt_data: { text: 'Be brief.\ngood' } });
    expect(bodyOf(armor, 1)).toEqual({ model_response_data: { text: 'good' } });
    expect(armor.received[0]?.headers['authorization']).toBe('Bearer ya29.token');
    expect(await chat(served, say('bad'))).toMatchObject({ status: 418, text: 'not here' });
    answer = 'bad';
    expect(await chat(served, say('good'))).toMatchObject({ status: 418, text: 'not here' });
  });

  test.each(['PARTIAL', 'FAILURE'])(
    'googleModelArmor whose filters ended as %s fails the call',
    async (result) => {
      await using metadata = await metadataServer();
      using _env = environment({
        ...NO_CREDENTIALS,
        GCE_METADATA_HOST: metadata.address,
        METADATA_SERVER_DETECTION: 'assume-present',
      });
      await using provider = await llmProvider();
      await using armor = await service(() => found('NO_MATCH_FOUND', result));
      const request = [kinds.googleModelArmor(armor)];
      await using served = await llmGateway(provider, { model: { guardrails: { request } } });
      expect((await chat(served, say('good'))).status).toBe(503);
    },
  );
});

describe('azureContentSafety', () => {
  const safety = () =>
    service(({ text }, target) =>
      target.includes('detectJailbreak')
        ? { jailbreakAnalysis: { detected: text.includes('ignore all rules') } }
        : {
            blocklistsMatch: text.includes('listed')
              ? [{ blocklistName: 'b', blocklistItemText: 'listed' }]
              : [],
            categoriesAnalysis: [{ category: 'Hate', severity: text.includes('bad') ? 4 : 0 }],
          },
    );

  const text = 'Be brief.\ngood';

  test('azureContentSafety rejects by severity, by blocklist and as a jailbreak', async () => {
    await using provider = await llmProvider();
    await using azure = await safety();
    const settings = { analyzeText: { severityThreshold: 4, blocklistNames: ['b'] }, detectJailbreak: {} };
    const item = { ...kinds.azureContentSafety(azure, settings), rejection: REJECTED };
    await using served = await llmGateway(provider, { model: { guardrails: { request: [item] } } });
    expect((await chat(served, say('good'))).status).toBe(200);
    const calls = azure.received.map(({ target, headers }, index) => [
      target,
      headers['ocp-apim-subscription-key'],
      bodyOf(azure, index),
    ]);
    expect(calls).toEqual([
      ['/contentsafety/text:analyze?api-version=2024-09-01', 'azure-key', { text, blocklistNames: ['b'] }],
      ['/contentsafety/text:detectJailbreak?api-version=2024-02-15-preview', 'azure-key', { text }],
    ]);
    for (const content of ['bad', 'listed', 'ignore all rules'])
      expect(await chat(served, say(content))).toMatchObject({ status: 418, text: 'not here' });
    expect(provider.received).toHaveLength(1);
  });

  test('azureContentSafety calls the versions that are configured, and passes haltOnBlocklistHit on', async () => {
    await using provider = await llmProvider();
    await using azure = await safety();
    const settings = {
      analyzeText: { apiVersion: '2023-10-01', haltOnBlocklistHit: true },
      detectJailbreak: { apiVersion: '2024-09-15-preview' },
    };
    const request = [kinds.azureContentSafety(azure, settings)];
    await using served = await llmGateway(provider, { model: { guardrails: { request } } });
    expect((await chat(served, say('good'))).status).toBe(200);
    expect(azure.received.map(({ target }, index) => [target, bodyOf(azure, index)])).toEqual([
      [expect.stringMatching(/analyze\?api-version=2023-10-01$/), { text, haltOnBlocklistHit: true }],
      [expect.stringMatching(/detectJailbreak\?api-version=2024-09-15-preview$/), { text }],
    ]);
  });

  test('azureContentSafety without a key is called with a token of the managed identity', async () => {
    using _identity = await azureIdentity({ AZURE_TOKEN_CREDENTIALS: 'ManagedIdentityCredential' });
    await using provider = await llmProvider();
    await using azure = await safety();
    const request = [kinds.azureContentSafety(azure, { policies: undefined })];
    await using served = await llmGateway(provider, { model: { guardrails: { request } } });
    expect((await chat(served, say('good'))).status).toBe(200);
    expect(azure.received[0]?.headers['authorization']).toBe('Bearer of-the-system');
  });

  test('azureContentSafety rejects every call while its endpoint has a placeholder', async () => {
    await using provider = await llmProvider();
    const endpoint = '<resource-name>.cognitiveservices.azure.com';
    const request = [kinds.azureContentSafety({ address: '' }, { endpoint })];
    await using served = await llmGateway(provider, { model: { guardrails: { request } } });
    expect((await chat(served, say('good'))).status).toBe(503);
    expect(provider.received).toHaveLength(0);
  });

  test('azureContentSafety checks long texts in pieces of 10,000 characters', async () => {
    await using provider = await llmProvider(answering(completion(`${'😀 '.repeat(12_000)}bad`)));
    await using azure = await safety();
    const response = [kinds.azureContentSafety(azure)];
    await using served = await llmGateway(provider, { model: { guardrails: { response } } });
    expect((await chat(served)).status).toBe(403);
    expect(azure.received.map((_, index) => [...(bodyOf(azure, index)['text'] as string)].length)).toEqual([
      10_000, 10_000, 4_003,
    ]);
  });
});

describe('services of guardrails that fail', () => {
  const answers: [string, Parameters<typeof httpUpstream>[0]][] = [
    ['status 500', answering('{"results":[{"flagged":false}]}', 500)],
    ['status 401', answering('{}', 401)],
    ['HTML', answering('<p>ok</p>')],
    ['another shape', answering('{"ok":true}')],
    ['silence', () => undefined],
    ['a reset', (_, response) => response.destroy()],
  ];

  test.each(
    Object.keys(kinds).flatMap((kind) => answers.map(([what, answer]) => [kind, what, answer] as const)),
  )('%s with %s fails the call with 503', async (kind, _, answer) => {
    await using metadata = await metadataServer();
    using _env = environment({
      ...AWS_KEYS,
      GCE_METADATA_HOST: metadata.address,
      METADATA_SERVER_DETECTION: 'assume-present',
    });
    await using provider = await llmProvider();
    await using upstream = await httpUpstream(answer);
    const request = [kinds[kind as keyof typeof kinds](upstream)];
    await using served = await llmGateway(provider, {
      model: { guardrails: { request } },
      // The first use of a library of a cloud takes up to 1 s.
      options: { limits: { guardrailTimeout: 300 } },
    });
    const reply = await chat(served, say('canary text'));
    expect(reply.status).toBe(503);
    expect(errorOf(reply).message).toBe('failed to process LLM request: prompt guard failed');
    expect(provider.received).toEqual([]);
    expect((await served.accessLine(1))['error.detail']).toMatch(new RegExp(`^${upstream.address}: `));
    expect(served.accessLog.join('') + served.log.join('')).not.toContain('canary text');
  });

  test('bedrockGuardrails without credentials fails the call', async () => {
    using _env = environment(NO_CREDENTIALS);
    await using provider = await llmProvider();
    const request = [kinds.bedrockGuardrails({ address: `127.0.0.1:${await refusingPort()}` })];
    await using served = await llmGateway(provider, { model: { guardrails: { request } } });
    expect((await chat(served, say('x'))).status).toBe(503);
    expect((await served.accessLine(1))['error.detail']).toContain('no credentials');
  });
});

describe('the configuration of services', () => {
  test.each([
    ['openAIModeration without a key', { request: [{ openAIModeration: {} }] }, 'policies'],
    [
      'openAIModeration for responses',
      { response: [kinds.openAIModeration({ address: 'a:1' })] },
      'openAIModeration',
    ],
    [
      'azureContentSafety without a check',
      { request: [kinds.azureContentSafety({ address: 'a:1' }, { analyzeText: undefined })] },
      'checks nothing: set `analyzeText` or `detectJailbreak`',
    ],
    [
      'azureContentSafety for responses with detectJailbreak only',
      {
        response: [
          kinds.azureContentSafety({ address: 'a:1' }, { analyzeText: undefined, detectJailbreak: {} }),
        ],
      },
      'checks nothing: set `analyzeText`',
    ],
    ['an endpoint with a path', { request: [kinds.azureContentSafety({ address: 'a:1/x' })] }, 'endpoint'],
    [
      'a template id with a slash',
      { request: [{ googleModelArmor: { templateId: 'a/../b', projectId: 'p' } }] },
      'templateId',
    ],
  ])('%s is an error', async (_, guardrails, message) => {
    await expect(llmGateway({ address: '127.0.0.1:1' }, { model: { guardrails } })).rejects.toThrow(message);
  });
});
