import { describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../../kit/config.ts';
import { temporaryFolder } from '../../../kit/folder.ts';
import { gateway } from '../../../kit/gateway.ts';
import { type Json, openSession, post } from '../../../kit/mcp.ts';
import { mcpUpstream, reply } from '../../../kit/mcp-upstream.ts';
import { parseMetrics, sampleValue } from '../../../kit/open-metrics.ts';
import { until } from '../../../kit/until.ts';
import { httpUpstream, refusingPort } from '../../../kit/upstream.ts';

const FLAGS = ['--tools=echo,give,received', '--prompts=ask', '--resources=file:///1'];

async function guarded(processors: object[], more: Json = {}) {
  const { targets = [chaos('a', ...FLAGS)], limits = {}, policies = {}, backend, accessLog } = more;
  const yaml = JSON.parse(
    mcpConfig(targets, { backend, route: { policies: { ...policies, mcpGuardrails: { processors } } } }),
  );
  if (accessLog) yaml.frontendPolicies = { accessLog: { add: accessLog } };
  const gate = await gateway(JSON.stringify(yaml), { limits });
  const session = await openSession(`${gate.url}/mcp`);
  return {
    gate,
    session,
    call: async (name: string, args: object = {}): Promise<Json> =>
      session.request('tools/call', { name, arguments: args }),
    give: async (result: object): Promise<Json> =>
      session.request('tools/call', { name: 'give', arguments: { result } }),
    counted: async (phase: string, action: string) =>
      sampleValue(parseMetrics(await gate.running.metrics.render()), 'gw_guardrail_checks_total', {
        phase,
        action,
      }),
    [Symbol.asyncDispose]: () => gate.close(),
  };
}

const PII = [{ builtin: 'email' }, { builtin: 'creditCard' }, { pattern: 'secret-[0-9]+' }];
const regex = (action: string, more: object = {}) => ({ kind: 'regex', action, rules: PII, ...more });

describe('mcpGuardrails with patterns', () => {
  test('mask changes nested arguments before the tool gets them, and keeps keys, numbers and everything else', async () => {
    await using own = await guarded([regex('mask', { methods: { 'tools/call': 'request' } })]);
    await own.call('echo', {
      to: ['ann@example.com', { deep: 'card 4111-1111-1111-1111 and secret-42, twice secret-7' }],
      'bob@example.com': 4111111111111111,
      plain: 'unchanged',
    });
    const { result } = await own.call('received');
    const sent = JSON.parse(result.content[0].text).find((line: string) => line.includes('"deep"'));
    expect(JSON.parse(sent).params.arguments).toEqual({
      to: ['<EMAIL_ADDRESS>', { deep: 'card <CREDIT_CARD> and <masked>, twice <masked>' }],
      'bob@example.com': 4111111111111111,
      plain: 'unchanged',
    });
    expect(await own.counted('Request', 'Mask')).toBe(1);
    expect(await own.counted('Request', 'Allow')).toBe(1);
  });

  test('mask changes text, embedded resources, links and structured content of a result, not ids, types or binary data', async () => {
    await using own = await guarded([regex('mask', { methods: { 'tools/call': 'response' } })]);
    const binary = Buffer.from('ann@example.com').toString('base64');
    const { result } = await own.give({
      content: [
        { type: 'text', text: 'ask ann@example.com', _meta: { from: 'ann@example.com' } },
        {
          type: 'resource',
          resource: { uri: 'mailto:ann@example.com', mimeType: 'a@b.io', text: 'ann@example.com' },
        },
        {
          type: 'resource_link',
          uri: 'mailto:ann@example.com',
          name: 'n',
          description: 'of ann@example.com',
        },
        { type: 'image', data: binary, mimeType: 'image/png' },
      ],
      structuredContent: { type: 'ann@example.com', rows: [{ uri: 'ann@example.com', n: 1.5 }] },
      isError: false,
    });
    expect(result).toEqual({
      content: [
        { type: 'text', text: 'ask <EMAIL_ADDRESS>', _meta: { from: 'ann@example.com' } },
        {
          type: 'resource',
          resource: { uri: 'mailto:ann@example.com', mimeType: 'a@b.io', text: '<EMAIL_ADDRESS>' },
        },
        {
          type: 'resource_link',
          uri: 'mailto:ann@example.com',
          name: 'n',
          description: 'of <EMAIL_ADDRESS>',
        },
        { type: 'image', data: binary, mimeType: 'image/png' },
      ],
      structuredContent: { type: '<EMAIL_ADDRESS>', rows: [{ uri: '<EMAIL_ADDRESS>', n: 1.5 }] },
      isError: false,
    });
  });

  test('a mask leaves every other byte of a result as the target sent it', async () => {
    await using own = await guarded([regex('mask', { methods: { 'tools/call': 'response' } })], {
      targets: [chaos('a', '--tools=emit')],
    });
    const result = (text: string) =>
      `{"content": [{"type":"text","text":"${text}"}],"n":9007199254740993,"x":1.0}`;
    // The gateway sent `initialize` as request 1.
    const message = `{"jsonrpc":"2.0","id":2,"result":${result('a@example.com')}}\n`;
    const { text } = await own.call('emit', {
      pieces: [Buffer.from(message).toString('base64')],
      silent: true,
    });
    expect(text).toContain(`"result":${result('<EMAIL_ADDRESS>')}`);
  });

  test.each([
    ['a value', { message: 'ann@example.com' }, 'email'],
    ['a nested value', { a: [{ b: ['x', 'secret-1'] }] }, 'rules[2]'],
    ['a key', { 'ann@example.com': 1 }, 'email'],
    ['a number', { card: 4111111111111111 }, 'creditCard'],
  ])(
    'reject answers arguments that match in %s with an error that names processor and rule',
    async (_what, args, rule) => {
      await using own = await guarded([
        regex('mask', { methods: { 'prompts/get': 'full' } }),
        regex('reject'),
      ]);
      expect((await own.call('echo', args)).error).toEqual({
        code: -32001,
        message: `the request was rejected by mcpGuardrails.processors[1] (regex): it matches ${rule}`,
      });
      const { result } = await own.call('received');
      expect(result.content[0].text).not.toContain('tools/call","params":{"name":"echo"');
      expect(await own.counted('Request', 'Reject')).toBe(1);
    },
  );

  test('reject replaces a result that matches by an error, and the log does not keep the result', async () => {
    await using own = await guarded([regex('reject', { methods: { 'tools/*': 'response' } })], {
      accessLog: { result: 'mcp.tool.result', problem: 'mcp.tool.error.message' },
    });
    const { error } = await own.give({ content: [{ type: 'text', text: 'secret-1' }] });
    expect(error).toEqual({
      code: -32001,
      message: 'the response was rejected by mcpGuardrails.processors[0] (regex): it matches rules[2]',
    });
    const line = own.gate.accessLog.find((each) => each.includes('tools/call'));
    expect(line).toContain('mcp.error.code=-32001');
    expect(line).toContain('reason=Guardrail');
    expect(line).toContain('problem="the response was rejected');
    expect(line).not.toContain('secret-1');
  });

  test('the log has arguments and result as guardrails left them', async () => {
    await using own = await guarded([regex('mask')], {
      accessLog: { args: 'mcp.tool.arguments', result: 'mcp.tool.result' },
    });
    await own.call('echo', { message: 'ann@example.com' });
    const line = own.gate.accessLog.find((each) => each.includes('tools/call'));
    expect(line).toContain('EMAIL_ADDRESS');
    expect(line).not.toContain('ann@example.com');
  });

  test('prompts and resources are checked if methods names them, and tool calls then only if it does too', async () => {
    const methods = { 'prompts/get': 'response', '*/read': 'full' };
    await using own = await guarded([
      { kind: 'regex', rules: [{ pattern: 'a (ask|file)' }, { builtin: 'email' }], methods },
    ]);
    const prompt = await own.session.request('prompts/get', { name: 'ask' });
    expect(prompt.result.messages[0].content.text).toBe('<masked>');
    const resource = await own.session.request('resources/read', { uri: 'file:///1' });
    expect(resource.result.contents).toEqual([{ uri: 'file:///1', text: '<masked>:///1' }]);
    expect((await own.call('echo', { message: 'ann@example.com' })).result.content[0].text).toBe(
      'ann@example.com',
    );
  });

  test('reject reads the uri of a resource', async () => {
    const methods = { 'resources/read': 'request' };
    await using own = await guarded([
      { kind: 'regex', action: 'reject', rules: [{ pattern: '^file:///etc/' }], methods },
    ]);
    expect((await own.session.request('resources/read', { uri: 'file:///etc/passwd' })).error.code).toBe(
      -32001,
    );
    expect((await own.session.request('resources/read', { uri: 'file:///1' })).error).toBeUndefined();
  });

  test.each([
    ['a method before a prefix', { 'tools/call': 'off', 'tools/*': 'full', 'resources/read': 'full' }],
    ['a prefix before a suffix', { 'tools/*': 'off', '*/call': 'full', 'resources/read': 'full' }],
    ['a suffix before all', { '*/call': 'off', '*': 'full' }],
    ['a longer prefix', { 'tools/c*': 'off', 'tools/*': 'full', 'resources/read': 'full' }],
  ])('the most specific key of methods decides: %s', async (_, methods) => {
    await using own = await guarded([regex('reject', { methods })]);
    expect((await own.call('echo', { message: 'ann@example.com' })).error).toBeUndefined();
    expect((await own.session.request('resources/read', { uri: 'mailto:ann@example.com' })).error.code).toBe(
      -32001,
    );
  });

  test('processors work with several targets, prefixes and renamed tools, and see what the previous one left', async () => {
    const first = { kind: 'regex', rules: [{ pattern: 'one' }] };
    const second = { kind: 'regex', action: 'reject', rules: [{ pattern: '^<masked>$' }] };
    const tools = { rename: { echo: 'say' } };
    await using own = await guarded([first, second], {
      targets: [{ ...chaos('a', ...FLAGS), tools }, chaos('b')],
    });
    expect((await own.call('a_say', { message: 'one' })).error.message).toContain(
      'the request was rejected by mcpGuardrails.processors[1] (regex)',
    );
    expect((await own.call('a_say', { message: 'one two' })).result.content[0].text).toBe('<masked> two');
  });

  test('the result of a tool that ran as a task is checked when it is fetched', async () => {
    await using server = await mcpUpstream({
      capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } } } },
      script: ({ message }, response) => {
        if (message?.method !== 'tasks/result') return false;
        reply(response, message, { content: [{ type: 'text', text: 'ann@example.com' }] });
        return true;
      },
    });
    await using own = await guarded([regex('mask')], { targets: [{ name: 'a', mcp: { host: server.url } }] });
    const { result } = await own.session.request('tasks/result', { taskId: 't1' });
    expect(result.content[0].text).toBe('<EMAIL_ADDRESS>');
  });

  test('rules see the arguments that the client sent, and reject before guardrails', async () => {
    await using own = await guarded([regex('mask')], {
      policies: {
        mcpAuthorization: {
          rules: ['!has(mcp.tool.arguments) || mcp.tool.arguments.message == "ann@example.com"'],
        },
      },
    });
    expect((await own.call('echo', { message: 'ann@example.com' })).result.content[0].text).toBe(
      '<EMAIL_ADDRESS>',
    );
    expect((await own.call('echo', { message: 'secret-1' })).error.message).toBe(
      'the rules do not allow these arguments of echo',
    );
  });

  test('a pattern that makes other engines backtrack answers at once', async () => {
    const rules = [{ pattern: '(a+)+$' }, { pattern: '(x*)*y' }];
    await using own = await guarded([{ kind: 'regex', action: 'reject', rules }]);
    const { result } = await own.call('echo', { message: `${'a'.repeat(50_000)}!${'x'.repeat(50_000)}` });
    expect(result.content[0].text).toHaveLength(100_001);
  });

  test('white space and escapes around and inside of masked texts stay as they are', async () => {
    await using own = await guarded([regex('mask', { methods: { 'tools/call': 'request' } })], {
      targets: [chaos('a', '--tools=received')],
    });
    const args = '{ "a\\u0062" : [ "x" ,"a\\u0040example.com", { } ,[ ], null,-1.50e3 ] , "c":"\\"" }';
    const { url, id } = own.session;
    const { result } = await post(
      url,
      `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"received","arguments":${args}}}`,
      { 'mcp-session-id': id },
    );
    const sent = JSON.parse(result.content[0].text).at(-1);
    expect(sent).toContain(`"arguments":${args.replace('"a\\u0040example.com"', '"<EMAIL_ADDRESS>"')}`);
  });

  test('a message that is too long for patterns is rejected', async () => {
    await using own = await guarded([regex('mask', { methods: { 'tools/call': 'response' } })], {
      limits: { guardedCharacters: 1_000 },
    });
    const big = await own.give({ content: [{ type: 'text', text: 'x'.repeat(1_000) }] });
    expect(big.error).toEqual({
      code: -32603,
      message:
        'the response could not be checked by mcpGuardrails.processors[0] (regex): the response has more than 1000 characters, the most that a guardrail checks at once: send shorter texts',
    });
    expect((await own.call('echo')).error).toBeUndefined();
    const line = own.gate.accessLog.find((each) => each.includes('-32603'));
    expect(line).toContain('the response has more than 1000 characters');
  });

  test('errors of a target are passed on unchanged', async () => {
    await using own = await guarded([regex('mask')], { targets: [chaos('a', '--tools=fail')] });
    const { error } = await own.call('fail', { code: -32000, message: 'no' });
    expect(error).toEqual({ code: -32000, message: 'no' });
  });
});

/** A webhook that answers with this action, or with whatever the function does. */
const hook = (action: (body: Json, response: Json) => unknown) =>
  httpUpstream((_request, response, { body }) => {
    const answer = action(JSON.parse(Buffer.from(body, 'latin1').toString('utf8')).body, response);
    if (answer !== undefined) response.end(JSON.stringify({ action: answer }));
  });

describe('mcpGuardrails with a webhook', () => {
  test('a webhook gets method, target, parameters and result in the two phases, and its headers', async () => {
    await using service = await hook(() => ({}));
    await using own = await guarded([
      { kind: 'webhook', host: service.address, headers: { 'x-agent': 'request.headers["user-agent"]' } },
    ]);
    expect((await own.call('echo', { message: 'hi' })).result.content[0].text).toBe('hi');
    const params = { name: 'echo', arguments: { message: 'hi' } };
    const result = { content: [{ type: 'text', text: 'hi' }] };
    expect(service.received.map(({ target, body }) => [target, JSON.parse(body).body])).toEqual([
      ['/request', { method: 'tools/call', target: 'a', params }],
      ['/response', { method: 'tools/call', target: 'a', params, result }],
    ]);
    expect(service.received[0]?.headers['x-agent']).toBe('node');
  });

  test('a webhook can change arguments and results, and large numbers keep their digits', async () => {
    await using service = await httpUpstream((_request, response) =>
      response.end('{"action":{"body":{"params":{"name":"received","arguments":{"n":9007199254740993}}}}}'),
    );
    const request = { 'tools/call': 'request' };
    await using own = await guarded([
      { kind: 'webhook', host: service.address, path: '/check?phase=1', methods: request },
    ]);
    const { result } = await own.call('received');
    expect(JSON.parse(result.content[0].text).at(-1)).toContain('"arguments":{"n":9007199254740993}');
    expect(service.received[0]?.target).toBe('/check?phase=1');
    await using second = await hook(({ result: before }) => ({
      body: { result: { ...before, content: [{ type: 'text', text: 'masked' }] } },
    }));
    await using changed = await guarded([
      { kind: 'webhook', host: second.address, methods: { 'tools/call': 'response' } },
    ]);
    expect((await changed.give({ content: [], kept: 1 })).result).toEqual({
      content: [{ type: 'text', text: 'masked' }],
      kept: 1,
    });
  });

  test('a webhook checks lists as the client sees them, of one target and of several', async () => {
    await using service = await hook(({ result }) => {
      if (result.tools.length === 0) return { body: 'nothing to see', status_code: 403 };
      return {
        body: { result: { tools: result.tools.map((tool: Json) => ({ ...tool, description: 'ok' })) } },
      };
    });
    const processor = { kind: 'webhook', host: service.address, methods: { '*/list': 'full' } };
    const target = (name: string, include: string[]) => ({ ...chaos(name, ...FLAGS), tools: { include } });
    await using one = await guarded([processor], { targets: [target('a', ['echo'])] });
    const list = async ({ session }: typeof one) => session.request('tools/list');
    expect((await list(one)).result.tools).toEqual([
      { name: 'echo', inputSchema: { type: 'object' }, big: 1, description: 'ok' },
    ]);
    await using two = await guarded([processor], { targets: [target('a', ['echo']), target('b', ['give'])] });
    expect((await list(two)).result.tools.map(({ name, description }: Json) => [name, description])).toEqual([
      ['a_echo', 'ok'],
      ['b_give', 'ok'],
    ]);
    await using none = await guarded([processor], { targets: [target('a', ['x']), target('b', ['x'])] });
    expect((await list(none)).error).toEqual({
      code: -32001,
      message: 'the response was rejected by mcpGuardrails.processors[0] (webhook): nothing to see',
    });
    expect(none.gate.accessLog.some((line) => line.includes('mcp.error.code=-32001'))).toBe(true);
    const asked = service.received.map(({ body }) => JSON.parse(body).body);
    expect(asked.map(({ target: of, targets }) => of ?? targets)).toEqual(['a', ['a', 'b'], ['a', 'b']]);
  });

  test('pins see the definitions of a target, not those that a webhook left', async () => {
    await using folder = await temporaryFolder();
    await using service = await hook(({ result }) => ({
      body: {
        result: { tools: result.tools.map((tool: Json) => ({ ...tool, description: `${Math.random()}` })) },
      },
    }));
    const processor = { kind: 'webhook', host: service.address, methods: { 'tools/list': 'response' } };
    await using own = await guarded([processor], {
      backend: { toolPinning: { mode: 'enforce', file: `${folder.path}/pins.yaml` } },
    });
    await own.session.request('tools/list');
    expect((await own.session.request('tools/list')).result.tools).toHaveLength(3);
    expect((await own.call('echo', { message: 'hi' })).result.content[0].text).toBe('hi');
  });

  test.each([
    [403, -32001],
    [429, -32003],
    [400, -32600],
    [500, -32001],
  ])(
    'a rejection with status %i becomes the error %i with the text of the webhook',
    async (status_code, code) => {
      await using service = await hook(() => ({ body: 'no <b>cards</b>', status_code, reason: 'internal' }));
      await using own = await guarded([{ kind: 'webhook', host: service.address }]);
      expect((await own.call('echo')).error).toEqual({
        code,
        message: 'the request was rejected by mcpGuardrails.processors[0] (webhook): no <b>cards</b>',
      });
    },
  );

  const down: [string, () => Promise<{ address: string } & AsyncDisposable>][] = [
    [
      'refuses connections',
      async () => ({
        address: `127.0.0.1:${await refusingPort()}`,
        [Symbol.asyncDispose]: async () => undefined,
      }),
    ],
    ['never answers', () => hook(() => undefined)],
    ['answers 500', () => hook((_body, response) => void response.writeHead(500).end('{"action":{}}'))],
    ['answers something else', () => hook(() => ({ body: 'misspelt', statusCode: 403 }))],
    ['answers too much', () => hook(() => ({ reason: 'x'.repeat(5_000_000) }))],
    [
      'names another tool',
      () => hook(({ params }) => ({ body: { params: { ...params, name: 'received' } } })),
    ],
  ];

  test.each(down)(
    'a webhook that %s rejects the request, or lets it pass with failOpen',
    async (_what, start) => {
      await using service = await start();
      const limits = { guardrailTimeout: 300 };
      const methods = { 'tools/call': 'request' };
      const processor = { kind: 'webhook', host: service.address, methods };
      await using closed = await guarded([processor], { limits });
      expect((await closed.call('echo', { message: 'hi' })).error).toEqual({
        code: -32603,
        message: 'the request could not be checked by mcpGuardrails.processors[0] (webhook)',
      });
      await using open = await guarded([{ ...processor, failureMode: 'failOpen' }], { limits });
      expect((await open.call('echo', { message: 'hi' })).result.content[0].text).toBe('hi');
      expect(open.gate.log.join('')).toContain('a webhook failed; the call continues (failOpen)');
      expect(await open.counted('Request', 'FailOpen')).toBe(1);
    },
  );

  test('a webhook cannot make a request read another resource', async () => {
    await using service = await hook(({ params }) => ({ body: { params: { ...params, uri: 'file:///2' } } }));
    const methods = { 'resources/read': 'request' };
    await using own = await guarded([{ kind: 'webhook', host: service.address, methods }]);
    expect((await own.session.request('resources/read', { uri: 'file:///1' })).error.code).toBe(-32603);
    expect((await own.session.request('resources/read', { uri: 'file:///2' })).result.contents).toHaveLength(
      1,
    );
  });

  test('a failed webhook replaces a result by an error, or lets it pass with failOpen', async () => {
    await using service = await hook((_body, response) => void response.destroy());
    const processor = { kind: 'webhook', host: service.address, methods: { 'tools/call': 'response' } };
    await using closed = await guarded([processor]);
    expect((await closed.call('echo')).error.code).toBe(-32603);
    await using open = await guarded([{ ...processor, failureMode: 'failOpen' }]);
    expect((await open.call('echo')).result.content[0].text).toBe('echo');
  });

  test('a mask of a result that nests too deeply becomes an error', async () => {
    await using service = await httpUpstream((_request, response) =>
      response.end(`{"action":{"body":{"result":{"a":${'['.repeat(2_000)}${']'.repeat(2_000)}}}}}`),
    );
    await using own = await guarded([
      { kind: 'webhook', host: service.address, methods: { 'tools/call': 'response' } },
    ]);
    const { error } = await own.call('echo');
    expect(error.message).toContain('could not be checked');
  });

  test('a client that disconnects aborts the call to the webhook', async () => {
    let isClosed = false;
    await using service = await httpUpstream((_request, response) => {
      response.on('close', () => {
        isClosed = true;
      });
    });
    await using own = await guarded([{ kind: 'webhook', host: service.address }]);
    const abort = new AbortController();
    const call = own.session.send(
      { id: 9, method: 'tools/call', params: { name: 'echo' } },
      { signal: abort.signal },
    );
    await until(() => service.received.length === 1);
    abort.abort();
    await expect(call).rejects.toThrow();
    await until(() => isClosed);
  });

  test('calls of one session wait for their own webhook calls only', async () => {
    let release: (() => void) | undefined;
    await using service = await hook(({ params }, response) => {
      if (params.arguments.message !== 'slow') return {};
      release = () => response.end('{"action":{}}');
      return undefined;
    });
    await using own = await guarded([
      { kind: 'webhook', host: service.address, methods: { 'tools/call': 'request' } },
    ]);
    const slow = own.call('echo', { message: 'slow' });
    await until(() => release !== undefined);
    expect((await own.call('echo', { message: 'fast' })).result.content[0].text).toBe('fast');
    release?.();
    expect((await slow).result.content[0].text).toBe('slow');
  });
});

describe('the configuration of mcpGuardrails', () => {
  const diagnosticsOf = async (processors: object[]) => {
    await using gate = await gateway(
      mcpConfig([chaos('a')], { route: { policies: { mcpGuardrails: { processors } } } }),
    );
    return gate.live.served.diagnostics
      .filter(({ code }) => code !== 'AGW0312')
      .map(({ code, message }) => `${code} ${message}`);
  };

  test('a key of methods that the processor cannot check is a warning', async () => {
    const methods = { 'tools/list': 'response', 'tools/call': 'full', '*/list': 'full' };
    expect(await diagnosticsOf([regex('mask', { methods })])).toEqual([
      'AGW0303 `tools/list: response` has no effect',
      'AGW0303 `*/list: full` has no effect',
    ]);
    const hook = { kind: 'webhook', host: '127.0.0.1:9' };
    const lists = { 'tools/list': 'request', 'prompts/*': 'response', 'tasks/get': 'full', '*/list': 'off' };
    expect(await diagnosticsOf([{ ...hook, methods: lists }])).toEqual([
      'AGW0303 `tools/list: request` has no effect',
      'AGW0303 `tasks/get: full` has no effect',
    ]);
  });

  test.each([
    ['tool/call', '`tool/call` is not an MCP method: did you mean `tools/call`?'],
    ['Tools/Call', '`Tools/Call` is not an MCP method: did you mean `tools/call`?'],
    ['tool/*', '`tool/*` matches no MCP method: did you mean `tools/*`?'],
    ['*/cal', '`*/cal` matches no MCP method: did you mean `*/call`?'],
    ['task/get', '`task/get` is not an MCP method: did you mean `tasks/get`?'],
    ['everything', '`everything` is not an MCP method'],
  ])('the key %s of methods is an error', async (key, text) => {
    const methods = { [key]: 'full', 'prompts/get': 'full' };
    await expect(diagnosticsOf([regex('mask', { methods })])).rejects.toThrow(text);
  });

  test.each([
    ['without keys', {}],
    ['with all methods off', { '*': 'off' }],
    ['with methods that its kind cannot check', { 'tools/list': 'response', 'roots/list': 'full' }],
  ])('a processor %s checks nothing, which is an error', async (_what, methods) => {
    await expect(diagnosticsOf([regex('mask', { methods })])).rejects.toThrow(
      'methods: this processor checks nothing',
    );
  });

  test.each([
    ['no processors', [], 'processors'],
    ['an unknown kind', [{ kind: 'magic' }], 'kind'],
    ['an invalid pattern', [{ kind: 'regex', rules: [{ pattern: '(?=a)' }] }], 'invalid regular expression'],
    ['a pattern of methods with two stars', [regex('mask', { methods: { '*a*': 'full' } })], 'methods'],
    ['an unknown builtin', [{ kind: 'regex', rules: [{ builtin: 'passport' }] }], 'rules'],
    [
      'a rule of both forms',
      [{ kind: 'regex', rules: [{ builtin: 'email', pattern: 'x' }] }],
      'exactly one of',
    ],
    ['a remote processor without host', [{ kind: 'remote' }], 'host'],
    ['a webhook without host', [{ kind: 'webhook' }], 'host'],
  ])('%s is an error', async (_what, processors, text) => {
    await expect(diagnosticsOf(processors)).rejects.toThrow(text);
  });

  test('mcpGuardrails on a route without MCP backend is a warning', async () => {
    const yaml = JSON.parse(mcpConfig([chaos('a')]));
    yaml.gateways.default.routes = [
      { backends: [{ host: '127.0.0.1:1' }], policies: { mcpGuardrails: { processors: [regex('mask')] } } },
    ];
    await using gate = await gateway(JSON.stringify(yaml));
    expect(gate.live.served.diagnostics.map(({ message }) => message)).toContainEqual(
      expect.stringContaining('`mcpGuardrails` has no effect'),
    );
  });
});
