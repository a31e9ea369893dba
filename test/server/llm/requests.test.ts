import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { JsonBody } from '../../../src/server/llm/request/json-body.ts';
import {
  answering,
  bodyOf,
  CHAT,
  chat,
  completion,
  errorOf,
  llmGateway,
  llmProvider,
  modelsGateway,
  textOf,
} from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';

// JSON as clients may write it, not as JSON.stringify does: numbers, escapes and spaces of every form.
const space = fc.constantFrom('', ' ', '\n', '\t ');
const number = fc.constantFrom(
  '9007199254740993',
  '1.0',
  '1e-7',
  '-0',
  '1E400',
  '0.10',
  '12345678901234567890',
);
const string = fc.constantFrom(
  '"é"',
  '"\\u00e9"',
  '"\\/"',
  '"\\ud83d\\ude00"',
  '"{\\"a\\":1,}"',
  '"\\\\"',
  '""',
);
const { value: anyValue } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    number,
    string,
    fc.constantFrom('true', 'null', '[]', '{}'),
    fc.array(tie('value'), { maxLength: 3 }).map((items) => `[${items.join(', ')}]`),
    fc
      .array(tie('value'), { maxLength: 3 })
      .map((items) => `{${items.map((item, index) => `"k\\u0065y${index}" : ${item}`).join(' ,')}}`),
  ),
}));
const members = fc.uniqueArray(
  fc.record({
    key: fc.constantFrom(
      'seed',
      'metadata',
      '\\u0075ser',
      '__proto__',
      'constructor',
      'tools',
      'max_tokens',
      'a b',
    ),
    value: anyValue,
    before: space,
    after: space,
  }),
  { selector: ({ key }) => key },
);
type Member = { key: string; value: string; before: string; after: string };
const text = (list: readonly Member[]): string =>
  `{${list.map(({ key, value, before, after }) => `${before}"${key}"${after}:${before}${value}${after}`).join(',')}}`;

describe('LLM request bodies', () => {
  test('a request body keeps every byte that no change concerns', async () => {
    await fc.assert(
      fc.asyncProperty(members, async (list) => {
        const body = text(list);
        expect((await JsonBody.parse(Buffer.from(body))).toString()).toBe(body);
      }),
    );
  });

  test('a request body loses, gains and changes members without changes to the others', async () => {
    await fc.assert(
      fc.asyncProperty(
        members,
        fc.array(fc.constantFrom('seed', 'tools', 'user', 'new')),
        members,
        async (list, removed, set) => {
          const body = await JsonBody.parse(Buffer.from(text(list)));
          for (const key of removed) body.remove(key);
          const fresh = set.filter(({ key }) => key === 'max_tokens' || key === 'constructor');
          for (const { key } of fresh) body.set(key, 'fresh');
          const result = body.toString();
          JSON.parse(result);
          const nameOf = (key: string): string => JSON.parse(`"${key}"`) as string;
          const kept = list.filter(
            ({ key }) =>
              !removed.includes(nameOf(key) as 'seed') && !fresh.some((change) => change.key === key),
          );
          for (const { key, value, before, after } of kept)
            expect(result).toContain(`${before}"${key}"${after}:${before}${value}`);
          const names = [...kept, ...fresh].map(({ key }) => nameOf(key)).sort();
          expect(Object.getOwnPropertyNames(JSON.parse(result)).sort()).toEqual(names);
        },
      ),
    );
  });

  test('a request body reaches the provider byte for byte, and so does the response the client', async () => {
    const answer =
      '{"id":"x", "choices":[], "seed": 9007199254740993,"t":1.0,"e":"\\u00e9","usage":{"prompt_tokens":1}}';
    await using provider = await llmProvider(answering(answer));
    await using served = await llmGateway(provider);
    const body =
      '{"model":"gpt-x","seed":9007199254740993,"t":1.0,"s":1e-7,"e":"\\u00e9","é":1,"__proto__":{"a":1},\n"tools":[[[[[[[[[[1]]]]]]]]]],"max_tokens":5}';
    const reply = await chat(served, body);
    expect(reply.text).toBe(answer);
    expect(textOf(provider)).toBe(body);
    const [received] = provider.received;
    expect(received?.headers['content-length']).toBe(String(Buffer.byteLength(body)));
    expect((await served.accessLine(1))['gen_ai.usage.input_tokens']).toBe('1');
  });
});

describe('rejected LLM requests', () => {
  test.each(['/', '/v1/nope', '/v1/chat/completions'])(
    'GET %s is a 404 that lists the available paths',
    async (path) => {
      await using provider = await llmProvider();
      await using gate = await llmGateway(provider);
      const { status, text } = await send(gate.url + path);
      expect([status, JSON.parse(text).error]).toEqual([
        404,
        {
          message: `unknown endpoint GET ${path}: send a POST with a \`model\`, such as /v1/chat/completions; GET /v1/models lists the models`,
          type: 'invalid_request_error',
          code: 'unknown_url',
        },
      ]);
      expect(provider.received).toEqual([]);
    },
  );

  const models = [
    { name: 'acme-*', provider: 'echo' },
    { name: 'hidden', provider: 'echo', visibility: 'internal' },
  ];
  test.each([
    ['no JSON', '{', 400, 'invalid_request_body'],
    ['a list', '[]', 400, 'invalid_request_body'],
    ['nothing', '', 400, 'invalid_request_body'],
    ['a member twice', '{"model":"acme-a","model":"other"}', 400, 'invalid_request_body'],
    ['a member twice, once escaped', '{"model":"acme-a","m\\u006fdel":"other"}', 400, 'invalid_request_body'],
    [
      'deep nesting',
      `{"model":"acme-a","x":${'['.repeat(200)}${']'.repeat(200)}}`,
      400,
      'invalid_request_body',
    ],
    ['no model', '{"messages":[]}', 400, 'missing_model'],
    ['a number for a model', '{"model":7}', 400, 'missing_model'],
    ['an unknown model', '{"model":"other"}', 404, 'model_not_found'],
    ['an internal model', '{"model":"hidden"}', 404, 'model_not_found'],
    ['a large body', `{"model":"acme-a","x":"${'x'.repeat(10_000)}"}`, 413, 'request_body_too_large'],
  ])('an LLM request with %s is rejected in the OpenAI error format', async (_, body, status, code) => {
    await using served = await modelsGateway(models, {}, {}, { limits: { llmRequestBytes: 10_000 } });
    const reply = await chat(served, body);
    expect(reply.status).toBe(status);
    expect(reply.headers['content-type']).toBe('application/json');
    expect(errorOf(reply)).toMatchObject({ code, type: 'invalid_request_error' });
    const { error } = await served.accessLine(1);
    // Names of models that clients choose would make as many errors in the log.
    expect(error).toBe(
      errorOf(reply).message.replace(
        /: "(?:other|hidden)"; GET \/v1\/models lists the models that you may use$/,
        '',
      ),
    );
  });
});

describe('rejected models in the access log', () => {
  const names = ['acme-mini', 'acme-large', ...Array.from({ length: 10 }, (_, index) => `m${index}`)];
  const models = names.map((name) => ({ name, provider: 'echo' }));
  const KNOWN = 'acme-mini, acme-large, m0, m1, m2, m3, m4, m5, m6, m7, and 2 more';

  test.each([
    ['that nobody has', 'all', 'gpt-x', `unknown model "gpt-x"; available: ${KNOWN}`],
    [
      'whose name is long and odd',
      'all',
      `"\n${'x'.repeat(5_000)}`,
      `unknown model "\\"\\n${'x'.repeat(98)}…"; available: ${KNOWN}`,
    ],
    ['of others', 'one', 'm1', 'the API key does not allow the model "m1"; allowed: acme-*, mini'],
    ['when there is none', 'none', 'm1', 'the API key does not allow the model "m1"; allowed: none'],
  ])(
    'the access log names a rejected model %s, and the available models',
    async (_which, key, model, detail) => {
      const keys = [
        { key: 'all' },
        { key: 'one', allowedModels: ['acme-*', 'mini'] },
        { key: 'none', allowedModels: [] },
      ];
      await using served = await modelsGateway(models, { policies: { apiKey: { mode: 'strict', keys } } });
      const reply = await chat(served, { ...CHAT, model }, { authorization: `Bearer ${key}` });
      const { message } = errorOf(reply);
      expect(message).toMatch(/^Model (?:not found|is not allowed for this API key): "/);
      expect(message).toContain(JSON.stringify(model).slice(1, 90));
      expect(message.length).toBeLessThan(220);
      expect(message).not.toContain('\n');
      // Names of other models may be confidential.
      expect(message.replace(/"(?:gpt-x|m1)"/, '')).not.toMatch(/gpt|acme|m1/);
      const line = await served.accessLine(1);
      expect(line['error.detail']).toBe(detail);
      expect(line['gen_ai.request.model']?.length).toBeLessThan(120);
      expect(line['gen_ai.request.model']).toContain(model.slice(2, 90));
    },
  );
});

describe('LLM API keys', () => {
  const keys = [
    { key: 'team-a', allowedModels: ['acme-*'] },
    { key: 'team-b', allowedModels: [] },
    { key: 'team-c' },
  ];
  const apiKey = { mode: 'strict', keys };
  const as = (key: string) => ({ authorization: `Bearer ${key}` });

  test('an API key allows only its models, and the list of models is limited to them', async () => {
    const models = ['*', 'acme-mini', 'other'].map((name) => ({ name, provider: 'echo' }));
    await using served = await modelsGateway(models, { policies: { apiKey } });
    const status = async (key: string, model: string): Promise<number> =>
      (await chat(served, { ...CHAT, model }, as(key))).status;
    expect(await status('team-a', 'acme-mini')).toBe(200);
    expect(await status('team-b', 'acme-mini')).toBe(403);
    expect(await status('team-c', 'whatever')).toBe(200);
    const refused = await chat(served, { ...CHAT, model: 'other' }, as('team-a'));
    expect(refused.status).toBe(403);
    expect(errorOf(refused)).toMatchObject({
      code: 'model_not_allowed',
      message: expect.stringMatching(/^Model is not allowed for this API key: "/) as string,
    });
    const listed = async (key: string): Promise<string[]> => {
      const { text: body } = await send(`${served.url}/v1/models`, { headers: as(key) });
      return (JSON.parse(body) as { data: { id: string }[] }).data.map(({ id }) => id);
    };
    expect(await listed('team-a')).toEqual(['acme-mini']);
    expect(await listed('team-b')).toEqual([]);
    expect(await listed('team-c')).toEqual(['*', 'acme-mini', 'other']);
  });

  test('the list of models has the names that a key allows and a pattern matches', async () => {
    const models = [
      { name: '*', provider: 'echo' },
      { name: 'hidden', provider: 'echo', visibility: 'internal' },
    ];
    const named = [{ key: 'k', allowedModels: ['gpt-x', 'gpt-y', 'claude-*', 'gpt-x'] }];
    const policies = { apiKey: { mode: 'strict', keys: named } };
    await using any = await modelsGateway(models, { policies });
    await using some = await modelsGateway(
      [
        { name: 'gpt-*', provider: 'echo' },
        { name: 'gpt-x', provider: 'echo' },
      ],
      {
        policies: {
          apiKey: { mode: 'strict', keys: [{ key: 'k', allowedModels: ['other', 'gpt-y', 'gpt-x'] }] },
        },
      },
    );
    const listed = async ({ url }: { url: string }): Promise<string[]> => {
      const { text: body } = await send(`${url}/v1/models`, { headers: as('k') });
      return (JSON.parse(body) as { data: { id: string }[] }).data.map(({ id }) => id);
    };
    expect(await listed(any)).toEqual(['gpt-x', 'gpt-y']);
    expect(await listed(some)).toEqual(['gpt-x', 'gpt-y']);
  });

  test('client API keys are checked by the gateway and not forwarded', async () => {
    await using provider = await llmProvider();
    await using served = await llmGateway(provider, { llm: { policies: { apiKey } } });
    const refused = await chat(served, CHAT, as('wrong'));
    expect(refused.status).toBe(401);
    expect(errorOf(refused).message).toBe('api key authentication failure: invalid credentials');
    await chat(served, CHAT, as('team-c'));
    expect(provider.received[0]?.headers).not.toHaveProperty('authorization');
  });

  test('client keys are forwarded to the provider when neither the gateway nor the model has keys', async () => {
    await using provider = await llmProvider();
    await using served = await llmGateway(provider);
    await chat(served, CHAT, { ...as('sk-mine'), cookie: 'a=b' });
    expect(provider.received[0]?.headers).toMatchObject({ authorization: 'Bearer sk-mine' });
    expect(provider.received[0]?.headers).not.toHaveProperty('cookie');
  });
});

describe('provider paths, headers and fields', () => {
  test.each([
    ['/v1', '/v1/chat/completions?a=1', '/v1/chat/completions?a=1'],
    ['/v1/', '/v1/embeddings', '/v1/embeddings'],
    ['/api/openai', '/v1/responses', '/api/openai/responses'],
    ['', '/v1/completions', '/completions'],
    ['/v1', '/chat/completions', '/v1/chat/completions'],
  ])('a base URL ending in %j sends %s to %s', async (prefix, asked, reached) => {
    await using provider = await llmProvider();
    const params = { baseUrl: `http://${provider.address}${prefix}` };
    await using served = await llmGateway(provider, { params });
    await send(served.url + asked, { method: 'POST', body: JSON.stringify(CHAT) });
    expect(provider.received[0]?.target).toBe(reached);
    expect(provider.received[0]?.headers.host).toBe(provider.address);
  });

  test.each([
    ['/v1', '/v2/rerank', '/v2/rerank'],
    ['/api/v1', '/v2/rerank', '/api/v2/rerank'],
    ['/api', '/v2/rerank', '/api/v2/rerank'],
    ['/v1', '/v1/rerank', '/v1/rerank'],
  ])('a base URL ending in %j rewrites the version of %s to %s', async (prefix, asked, reached) => {
    await using provider = await llmProvider();
    const params = { baseUrl: `http://${provider.address}${prefix}` };
    await using served = await llmGateway(provider, { params });
    await send(served.url + asked, { method: 'POST', body: JSON.stringify(CHAT) });
    expect(provider.received[0]?.target).toBe(reached);
  });

  test.each([
    ['/compatibility/v1', '/v2/rerank', '/v2/rerank'],
    ['/compatibility/v1', '/v1/rerank', '/v1/rerank'],
    ['/compatibility/v1', '/rerank', '/v2/rerank'],
    ['/compatibility/v1', '/v1/chat/completions', '/compatibility/v1/chat/completions'],
    ['/behind/proxy/compatibility/v1', '/v2/rerank', '/behind/proxy/v2/rerank'],
    ['/v2', '/v1/rerank', '/v2/rerank'],
  ])('a Cohere base URL ending in %j sends %s to %s', async (prefix, asked, reached) => {
    await using provider = await llmProvider();
    const params = { baseUrl: `http://${provider.address}${prefix}` };
    await using served = await llmGateway(provider, { model: { provider: 'cohere' }, params });
    await send(served.url + asked, { method: 'POST', body: JSON.stringify(CHAT) });
    expect(provider.received[0]?.target).toBe(reached);
  });

  test.each([
    ['http://user:t0ps3cret@127.0.0.1/v1', 'remove `user:password@`'],
    ['http://t0ps3cret@127.0.0.1/v1', 'remove `user:password@`'],
    ['http://127.0.0.1/v1?key=t0ps3cret', 'without a query'],
    ['http://127.0.0.1/v1#t0ps3cret', 'without a query'],
  ])(
    'a base URL with more than an origin and a path is an error that does not repeat it (case %#)',
    async (baseUrl, help) => {
      const models = [{ name: '*', provider: 'oaiCompat', params: { baseUrl } }];
      const error = await modelsGateway(models).catch((problem: Error) => problem);
      expect(String(error)).toContain(help);
      expect(String(error)).not.toContain('t0ps3cret');
      const entry = { name: 'p', provider: 'oaiCompat', params: { baseUrl } };
      const shared = [{ name: '*', provider: { reference: 'p' } }];
      await expect(modelsGateway(shared, { providers: [entry] })).rejects.toThrow(help);
    },
  );

  test('header changes apply to requests and responses, and provider cookies are removed', async () => {
    const headers = { 'x-request-id': 'r1', 'x-internal': 'yes', 'set-cookie': 'a=b' };
    await using provider = await llmProvider(answering(completion('Hello.'), 200, headers));
    const model = {
      requestHeaders: { set: { 'x-team': 'a' }, remove: ['x-drop'] },
      responseHeaders: { remove: ['x-internal'] },
    };
    await using served = await llmGateway(provider, { model });
    const reply = await chat(served, CHAT, { 'x-drop': '1' });
    expect(provider.received[0]?.headers).toMatchObject({ 'x-team': 'a' });
    expect(provider.received[0]?.headers).not.toHaveProperty('x-drop');
    expect(reply.headers['x-request-id']).toBe('r1');
    expect(reply.headers).not.toHaveProperty('x-internal');
    expect(reply.headers).not.toHaveProperty('set-cookie');
  });

  test('fields of a shared provider entry apply, and fields of the model override them', async () => {
    await using provider = await llmProvider();
    const entry = {
      name: 'shared',
      provider: 'oaiCompat',
      params: { baseUrl: `http://${provider.address}/v1`, apiKey: 'sk-shared' },
      defaults: { temperature: 0.5, top_p: 0.5 },
    };
    const models = [{ name: '*', provider: { reference: 'shared' }, defaults: { temperature: 0.1 } }];
    await using served = await modelsGateway(models, { providers: [entry] });
    await chat(served);
    expect(bodyOf(provider)).toEqual({ ...CHAT, temperature: 0.1, top_p: 0.5 });
    expect(provider.received[0]?.headers['authorization']).toBe('Bearer sk-shared');
    await expect(modelsGateway(models, { providers: [entry, entry] })).rejects.toThrow(
      'two provider entries',
    );
  });

  test('a transformation result that JSON cannot represent removes the field', async () => {
    await using provider = await llmProvider();
    const transformation = {
      a: '0.0 / 0.0',
      b: 'b"bytes"',
      c: '[1, {"x": true}]',
      d: 'null',
      e: 'llmRequest.model',
    };
    await using served = await llmGateway(provider, { model: { transformation } });
    await chat(served, { ...CHAT, a: 1, b: 2 });
    expect(bodyOf(provider)).toEqual({ ...CHAT, c: [1, { x: true }], d: null, e: CHAT.model });
  });
});
