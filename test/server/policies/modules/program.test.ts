import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ConfigError } from '../../../../src/library/index.ts';
import { definePolicy, type PolicyDefinition } from '../../../../src/library/policy.ts';
import {
  assertThat,
  type StubModel,
  stubMcpServer,
  stubModel,
  type TestGateway,
  testGateway,
} from '../../../../src/library/testing/index.ts';

// Policies that a program gives to its gateway. What they do with requests is the same for those of files.

type Entry = Readonly<{ options?: Record<string, unknown>; timeout?: string }>;

/** A gateway whose route answers with what a policy has left of the request. */
const echoing = (policies: readonly PolicyDefinition[], entry: Entry = {}): Promise<TestGateway> =>
  testGateway(
    {
      gateways: {
        default: {
          port: 1,
          routes: [
            {
              policies: {
                modules: policies.map(({ name }) => ({ policy: name, ...entry })),
                directResponse: {
                  status: 200,
                  bodyExpression:
                    '{"method": request.method, "path": request.path, "host": request.host, "seen": default(request.headers["x-seen"], ""), "body": string(request.body)}',
                },
              },
            },
          ],
        },
      },
    },
    { policies },
  );

const one = (policy: Omit<PolicyDefinition, 'name'>, entry?: Entry): Promise<TestGateway> =>
  echoing([{ name: 'team', ...policy }], entry);

const post = (gateway: TestGateway, body: string, path = '/a?b=c'): Promise<Response> =>
  fetch(new URL(path, gateway.url), { method: 'POST', body });

async function localServer(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const close = (): Promise<void> => new Promise((resolve) => server.close(() => resolve()));
  return { url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: close };
}

describe('request', () => {
  test('a policy changes method, path, host, headers and body of a request', async () => {
    await using gateway = await one({
      async request(request) {
        expect([request.method, request.path, request.headers.has('X-SEEN')]).toEqual([
          'POST',
          '/a?b=c',
          false,
        ]);
        const body: unknown = await request.json();
        request.method = 'PUT';
        request.path = '/x%41?q=1';
        request.host = 'other.example';
        request.headers.set('x-seen', 'yes');
        request.setBody({ was: body });
      },
    });
    expect(await (await post(gateway, '{"n":1}')).json()).toEqual({
      method: 'PUT',
      path: '/xA',
      host: 'other.example',
      seen: 'yes',
      body: '{"was":{"n":1}}',
    });
  });

  test('policies run in order, and each sees what the one before has left', async () => {
    const add = (name: string): PolicyDefinition => ({
      name,
      request: ({ headers }) => headers.set('x-seen', `${headers.get('x-seen') ?? ''}${name}`),
    });
    await using gateway = await echoing([add('a'), add('b'), add('c')]);
    expect(await (await post(gateway, '')).json()).toMatchObject({ seen: 'abc' });
  });

  test('a response that a policy returns answers the request, as a stream', async () => {
    const gate = Promise.withResolvers<void>();
    await using gateway = await one({
      request: () =>
        new Response(
          new ReadableStream({
            async start(controller) {
              controller.enqueue(new TextEncoder().encode('first '));
              await gate.promise;
              controller.enqueue(new TextEncoder().encode('second'));
              controller.close();
            },
          }),
          { status: 203, headers: { 'x-own': 'a', connection: 'upgrade' } },
        ),
    });
    const response = await post(gateway, 'x');
    expect([response.status, response.headers.get('x-own')]).toEqual([203, 'a']);
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader?.read())?.value).toBe('first ');
    gate.resolve();
    expect((await reader?.read())?.value).toBe('second');
  });

  test('deny answers with its status and message, and the request counts as denied by modules', async () => {
    await using gateway = await one({ request: (_request, context) => context.deny('not on Sundays', 451) });
    const response = await post(gateway, '');
    expect([response.status, await response.text()]).toEqual([451, 'not on Sundays']);
    await assertThat(gateway).toBeDeniedBy('modules');
    expect(gateway.requests[0]).toMatchObject({ reason: 'Policy', error: 'not on Sundays' });
  });

  test.each<[string, NonNullable<PolicyDefinition['request']>, RegExp]>([
    [
      'throws',
      () => {
        throw new Error('broken');
      },
      /broken \(.*program\.test\.ts/,
    ],
    ['rejects', () => Promise.reject(new TypeError('broken later')), /broken later/],
    [
      'throws no error',
      () => {
        throw null;
      },
      /^null$/,
    ],
    [
      'sets a header that frames the message',
      ({ headers }) => headers.set('content-length', '1'),
      /expected a header other than/,
    ],
    [
      'sets a header with a line break',
      ({ headers }) => headers.set('x-a', 'b\r\nc: d'),
      /cannot have this value/,
    ],
    [
      'sets a path that is none',
      (request) => {
        request.path = 'nothing';
      },
      /`path` of a request cannot be "nothing"/,
    ],
    [
      'sets the method CONNECT',
      (request) => {
        request.method = 'CONNECT';
      },
      /`method` of a request cannot be "CONNECT"/,
    ],
    [
      'denies with a status of success',
      (_request, context) => context.deny('x', 200),
      /expected a status from 400 to 599/,
    ],
    ['sets a body that JSON cannot have', (request) => request.setBody(1n), /BigInt/],
    [
      'sets a body of another kind',
      (request) => request.setBody(new URLSearchParams('a=b')),
      /expected a body/,
    ],
    [
      'returns what is no response',
      () => ({ status: 403 }) as Response,
      /it returned Object: expected nothing or a Response/,
    ],
    ['returns a word', () => 'no' as unknown as Response, /it returned string/],
    ['returns a failed response', () => Response.error(), /Response with the status 0/],
    [
      'returns a response that was read',
      async () => {
        const read = new Response('x');
        await read.text();
        return read;
      },
      /body was read before/,
    ],
    [
      'throws an object without a prototype',
      () => {
        throw Object.create(null);
      },
      /cannot be shown/,
    ],
    [
      'throws a long text',
      () => {
        throw new Error('x'.repeat(1e6));
      },
      /^x{1024}/,
    ],
    [
      'returns what throws when it is awaited',
      () =>
        Object.defineProperty({}, 'then', {
          get() {
            throw new Error('gone');
          },
        }) as Response,
      /^gone/,
    ],
  ])(
    'a policy that %s answers with 500 and without its error, which is logged',
    async (_what, request, problem) => {
      await using gateway = await one({ request });
      const response = await post(gateway, '');
      expect([response.status, await response.text()]).toEqual([500, 'a policy has failed']);
      expect(gateway.messages.find(({ message }) => message === 'a policy has failed')?.fields).toEqual({
        policy: 'team',
        function: 'request',
        problem: expect.stringMatching(problem),
      });
    },
  );

  test.each([
    [
      'the package undici',
      async () => new (await import('undici')).Response('no', { status: 403 }) as unknown as Response,
    ],
    ['another policy', () => new Response('no', { status: 403 })],
  ])('a response of %s answers', async (_of, request) => {
    await using gateway = await one({ request });
    const response = await post(gateway, '');
    expect([response.status, await response.text()]).toEqual([403, 'no']);
  });

  test('a response that was fetched is passed on as it is decoded', async () => {
    await using server = await localServer((_request, response) => {
      response.setHeader('content-encoding', 'gzip');
      response.end(gzipSync('plain text'));
    });
    await using gateway = await one({ request: () => fetch(server.url) });
    expect(await (await post(gateway, '')).text()).toBe('plain text');
  });

  test('headers are those of the beginning of a loop that deletes some', async () => {
    const seen: string[][] = [];
    await using gateway = await one({
      request({ headers }) {
        for (const [name] of headers) if (name.startsWith('x-internal-')) headers.delete(name);
        seen.push([...headers].map(([name]) => name).filter((name) => name.startsWith('x-')));
      },
    });
    await fetch(gateway.url, {
      headers: { 'x-internal-a': '1', 'x-internal-b': '2', 'x-internal-c': '3', 'x-d': '4' },
    });
    expect(seen).toEqual([['x-d']]);
  });

  test('what a policy says and throws has no secrets', async () => {
    const secret = 'the-secret-of-the-upstream';
    await using gateway = await testGateway(
      {
        gateways: {
          default: {
            port: 1,
            routes: [
              {
                policies: { modules: [{ policy: 'team', options: { apiKey: '$SECRET' } }] },
                backends: [{ host: '127.0.0.1:1' }],
              },
            ],
          },
        },
      },
      {
        env: { SECRET: secret },
        policies: [
          {
            name: 'team',
            options: z.object({ apiKey: z.string() }),
            request({ path }, { options, log, deny }) {
              const { apiKey } = options as { apiKey: string };
              log('info', `with ${apiKey}`, {
                apiKey,
                authorization: 'Bearer abcdefghijklmnop',
                nested: { note: apiKey },
              });
              if (path === '/deny') deny(`wrong key ${apiKey}`);
              throw new Error(`broken by ${apiKey}`);
            },
          },
        ],
      },
    );
    const texts = [await (await gateway.fetch('/deny')).text(), await (await gateway.fetch('/throw')).text()];
    await gateway.idle();
    const all = JSON.stringify([texts, gateway.messages, gateway.requests]);
    expect(all).toMatch(/with \S*redacted/);
    expect(all).not.toMatch(/the-secret-of-the-upstream|abcdefghijklmnop/);
  });

  test('a policy that takes longer than its time limit is told so, and the request answered with 500', async () => {
    const told = Promise.withResolvers<unknown>();
    await using gateway = await one(
      {
        request: (_request, { signal }) =>
          new Promise(() => signal.addEventListener('abort', () => told.resolve(signal.aborted))),
      },
      { timeout: '50ms' },
    );
    expect((await post(gateway, '')).status).toBe(500);
    expect(await told.promise).toBe(true);
    expect(gateway.messages.at(-1)?.fields).toMatchObject({ problem: 'it took longer than 50ms' });
  });

  test('a policy is told that the client has left', async () => {
    const entered = Promise.withResolvers<void>();
    const told = Promise.withResolvers<void>();
    await using gateway = await one({
      request: (_request, { signal }) =>
        new Promise((_resolve, reject) => {
          entered.resolve();
          signal.addEventListener('abort', () => {
            told.resolve();
            reject(new Error('left'));
          });
        }),
    });
    const client = new AbortController();
    const sent = fetch(gateway.url, { signal: client.signal }).catch(() => 'aborted');
    await entered.promise;
    client.abort();
    expect(await sent).toBe('aborted');
    await told.promise;
    await gateway.idle();
    expect(gateway.messages.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test.each([
    ['{"a":1,"a":2}', 400, 'the member "a" is repeated in one object of the request body'],
    ['{"a":', 400, 'the request body is not valid JSON'],
  ])('json refuses %s for the client', async (body, status, text) => {
    await using gateway = await one({ request: async (request) => void (await request.json()) });
    const response = await post(gateway, body);
    expect([response.status, await response.text()]).toEqual([status, text]);
  });
});

describe('response', () => {
  test('policies change status, headers and body of a response, the last policy first', async () => {
    await using upstream = await testGateway({
      gateways: {
        default: { port: 1, routes: [{ policies: { directResponse: { status: 200, body: '{"n":1}' } } }] },
      },
    });
    const changing = (name: string): PolicyDefinition => ({
      name,
      async response(response) {
        response.status += 1;
        response.headers.append('x-order', name);
        response.setBody([name, await response.json()]);
      },
    });
    const policies = [changing('a'), changing('b')];
    await using gateway = await testGateway(
      {
        gateways: {
          default: {
            port: 1,
            routes: [
              {
                policies: { modules: [{ policy: 'a' }, { policy: 'b' }] },
                backends: [{ host: new URL(upstream.url).host }],
              },
            ],
          },
        },
      },
      { policies },
    );
    const response = await fetch(gateway.url);
    expect([response.status, response.headers.get('x-order'), await response.json()]).toEqual([
      202,
      'b, a',
      ['a', ['b', { n: 1 }]],
    ]);
  });
});

describe('context', () => {
  test('a policy knows its checked options, the route, the client and who calls', async () => {
    const seen: unknown[] = [];
    const team = definePolicy({
      name: 'team',
      options: z.object({ limit: z.coerce.number().default(7) }),
      request(_request, { options, route, address, caller, state }) {
        state.set('n', options.limit + 1);
        seen.push({ limit: options.limit, route, address, caller });
      },
      llmCall: (_call, { state }) => void seen.push(state.get('n')),
    });
    await using model = await stubModel();
    await using gateway = await testGateway(
      {
        llm: {
          models: [{ name: '*', ...model.as('openAI') }],
          policies: {
            modules: [{ policy: 'team', options: { limit: '5' } }],
            apiKey: { mode: 'strict', keys: [{ key: 'key-of-the-agent', metadata: { team: 'x' } }] },
          },
        },
      },
      { policies: [team] },
    );
    await chat(gateway, { model: 'any' }, 'key-of-the-agent');
    expect(seen).toEqual([
      { limit: 5, route: expect.any(String), address: '127.0.0.1', caller: { key: { team: 'x' } } },
      6,
    ]);
  });

  test.each<[string, unknown, Entry, string, RegExp]>([
    [
      'options that the schema refuses',
      { options: z.object({ n: z.object({ m: z.number() }) }), request: () => undefined },
      { options: { n: { m: 'x' } } },
      'options.n.m',
      /expected number/,
    ],
    [
      'options that the policy does not have',
      { request: () => undefined },
      { options: {} },
      'options',
      /takes no options/,
    ],
    [
      'a schema that fails',
      {
        options: { '~standard': { validate: () => Promise.reject(new Error('no')) } },
        request: () => undefined,
      },
      {},
      'options',
      /schema of the policy has failed: no/,
    ],
    ['a policy without functions', {}, {}, 'policy', /has none of the functions/],
    [
      'a policy with an unknown function',
      { reqest: () => undefined },
      {},
      'policy',
      /did you mean `request`/,
    ],
    ['a function that is none', { request: true }, {}, 'policy', /expected a function/],
  ])('a configuration is refused for %s', async (_what, policy, entry, path, message) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as a program in JavaScript has it
    const policies = [{ name: 'team', ...(policy as object) }] as PolicyDefinition[];
    const error: unknown = await echoing(policies, entry).catch((reason: unknown) => reason);
    if (!(error instanceof ConfigError)) throw error;
    expect(error.problems.map((problem) => [problem.path.slice(7).join('.'), problem.message])).toEqual([
      [path, expect.stringMatching(message)],
    ]);
  });

  test('two policies of one name are an error of the program', async () => {
    const request = () => undefined;
    await expect(
      echoing([
        { name: 'a', request },
        { name: 'a', request },
      ]),
    ).rejects.toThrow('two are called "a"');
  });

  test('a configuration is refused that names a policy which the program does not give', async () => {
    await expect(
      testGateway({
        llm: { models: [{ name: '*', provider: 'echo' }], policies: { modules: [{ policy: 'x' }] } },
      }),
    ).rejects.toThrow('the program gives no policy `x`');
  });
});

const chat = (gateway: TestGateway, body: object, key = 'none'): Promise<Response> =>
  fetch(new URL('/v1/chat/completions', gateway.url), {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'Hi' }], ...body }),
  });

describe('llmCall', () => {
  const llm = (model: StubModel, policies: readonly PolicyDefinition[]) =>
    testGateway(
      {
        llm: {
          models: [
            { name: 'big', ...model.as('openAI') },
            { name: 'small', provider: 'echo' },
          ],
          policies: { modules: policies.map(({ name }) => ({ policy: name })) },
        },
      },
      { policies },
    );

  test('a policy changes the request of a model call, and what it leaves keeps its text', async () => {
    await using model = await stubModel();
    await using gateway = await llm(model, [
      {
        name: 'a',
        llmCall(call) {
          expect([call.format, call.model]).toEqual(['completions', 'big']);
          call.request['temperature'] = 0;
          delete call.request['user'];
        },
      },
    ]);
    expect((await chat(gateway, { model: 'big', user: 'u', seed: 5 })).status).toBe(200);
    expect(model.calls[0]?.body).toEqual({
      model: 'big',
      messages: [{ role: 'user', content: 'Hi' }],
      seed: 5,
      temperature: 0,
    });
  });

  test.each<[string, NonNullable<PolicyDefinition['llmCall']>]>([
    [
      'the model of the call',
      (call) => {
        call.model = 'small';
      },
    ],
    [
      'the member of the request',
      (call) => {
        call.request['model'] = 'small';
      },
    ],
  ])('a policy chooses another model by %s', async (_how, llmCall) => {
    await using model = await stubModel();
    await using gateway = await llm(model, [
      { name: 'a', llmCall },
      {
        name: 'b',
        llmCall: (call) => {
          expect(call.model).toBe('small');
        },
      },
    ]);
    expect(await (await chat(gateway, { model: 'big' })).json()).toMatchObject({
      choices: [{ message: { content: 'Hi' } }],
    });
    expect(model.calls).toEqual([]);
  });

  test('a policy denies a call in the form of the API', async () => {
    await using model = await stubModel();
    await using gateway = await llm(model, [
      { name: 'a', llmCall: (_call, context) => context.deny('too late') },
    ]);
    const response = await chat(gateway, { model: 'big' });
    expect([response.status, await response.json()]).toEqual([
      403,
      { error: { message: 'too late', type: 'invalid_request_error', code: 'policy_denied' } },
    ]);
    expect(model.calls).toEqual([]);
  });

  test.each<[string, NonNullable<PolicyDefinition['llmCall']>]>([
    [
      'a model that is no text',
      (call) => {
        Object.assign(call, { model: 5 });
      },
    ],
    [
      'a member that JSON cannot have',
      (call) => {
        call.request['n'] = 1n;
      },
    ],
    [
      'a member in another case',
      (call) => {
        call.request['Messages'] = [];
      },
    ],
  ])('a call with %s fails as a fault of the policy', async (_what, llmCall) => {
    await using model = await stubModel();
    await using gateway = await llm(model, [{ name: 'a', llmCall }]);
    expect((await chat(gateway, { model: 'big' })).status).toBe(500);
    await assertThat(gateway).toBeDeniedBy('modules');
  });
});

describe('mcpCall and mcpResult', () => {
  const tools = () =>
    stubMcpServer({ read: ({ path }) => `content of ${String(path)}`, remove: () => 'removed' });

  async function called(url: string, name: string, args: Record<string, unknown>): Promise<unknown> {
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', url)));
    const result = await client.callTool({ name, arguments: args }).then(
      ({ content }) => content,
      (error: unknown) => String(error),
    );
    await client.close();
    return result;
  }

  test('policies change the arguments and the result of a tool call, and deny one', async () => {
    await using server = await tools();
    const policies: PolicyDefinition[] = [
      {
        name: 'a',
        mcpCall(call, context) {
          if (call.name === 'remove') context.deny('nothing is removed here');
          call.arguments['path'] = `/safe/${String(call.arguments['path'])}`;
        },
      },
      {
        name: 'b',
        mcpCall: (call) =>
          expect([call.method, call.target, call.arguments]).toEqual([
            'tools/call',
            'files',
            { path: '/safe/x' },
          ]),
        mcpResult(answer) {
          expect([answer.name, answer.error]).toEqual(['read', undefined]);
          answer.result = { ...answer.result, content: [{ type: 'text', text: 'changed' }] };
        },
      },
    ];
    await using gateway = await testGateway(
      {
        mcp: { targets: [server.target('files')], policies: { modules: [{ policy: 'a' }, { policy: 'b' }] } },
      },
      { policies },
    );
    expect(await called(gateway.url, 'read', { path: 'x' })).toEqual([{ type: 'text', text: 'changed' }]);
    expect(server.calls).toMatchObject([{ tool: 'read', arguments: { path: '/safe/x' } }]);
    expect(await called(gateway.url, 'remove', {})).toContain(
      'rejected by the policy a: nothing is removed here',
    );
    expect(server.calls.length).toBe(1);
  });

  test('guardrails check what policies leave', async () => {
    await using server = await tools();
    const policies: PolicyDefinition[] = [
      {
        name: 'a',
        mcpResult: (answer) => {
          answer.result = { content: [{ type: 'text', text: 'mail ann@example.com' }] };
        },
      },
    ];
    await using gateway = await testGateway(
      {
        mcp: {
          targets: [server.target('files')],
          policies: {
            modules: [{ policy: 'a' }],
            mcpGuardrails: { processors: [{ kind: 'regex', rules: [{ builtin: 'email' }], action: 'mask' }] },
          },
        },
      },
      { policies },
    );
    expect(await called(gateway.url, 'read', { path: 'x' })).toEqual([
      { type: 'text', text: expect.not.stringContaining('ann@') },
    ]);
  });

  test.each<[string, Omit<PolicyDefinition, 'name'>]>([
    [
      'throws',
      {
        mcpCall: () => {
          throw new Error('secret detail');
        },
      },
    ],
    [
      'leaves arguments that are none',
      {
        mcpCall: (call) => {
          Object.assign(call, { arguments: 5 });
        },
      },
    ],
    [
      'leaves no result',
      {
        mcpResult: (answer) => {
          answer.result = undefined;
        },
      },
    ],
  ])('a policy that %s fails the call, and the client learns no more', async (_what, policy) => {
    await using server = await tools();
    await using gateway = await testGateway(
      { mcp: { targets: [server.target('files')], policies: { modules: [{ policy: 'a' }] } } },
      { policies: [{ name: 'a', ...policy }] },
    );
    const result = String(await called(gateway.url, 'read', { path: 'x' }));
    expect(result).toMatch(/the (?:request|response) could not be checked by the policy a/);
    expect(result).not.toContain('secret detail');
  });
});
