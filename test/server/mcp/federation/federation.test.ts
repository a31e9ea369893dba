import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../../kit/config.ts';
import { gateway, type TestGateway } from '../../../kit/gateway.ts';
import { type Json, type McpSession, openSession } from '../../../kit/mcp.ts';
import { mcpUpstream, reply, type Script } from '../../../kit/mcp-upstream.ts';

const A = chaos('a', '--tools=echo,x_y', '--prompts=ask', '--resources=file:///1,ui://panel');
const B = chaos('b-2.x', '--tools=echo,other', '--resources=file:///1');

let gate: TestGateway;
let session: McpSession;
beforeAll(async () => {
  gate = await gateway(mcpConfig([A, B]));
  session = await openSession(`${gate.url}/mcp`);
});
afterAll(() => gate.close());

const namesOf = (items: Json[], key = 'name'): string[] => items.map((item) => item[key]);

describe('initialize over several targets', () => {
  test('initialize over several targets gives one merged result', () => {
    const { result } = session.initialize;
    expect(result.serverInfo.name).toBe('agctl');
    expect(result.capabilities).toEqual({
      tools: { listChanged: true },
      prompts: { listChanged: true },
      completions: {},
      resources: { subscribe: true, listChanged: true },
      logging: {},
    });
    expect(result.instructions).toContain('[a]\nhow to use a');
    expect(result.instructions).toContain('[b-2.x]\nhow to use b-2.x');
  });

  test('initialize over several targets takes the lowest protocol revision', async () => {
    await using old = await gateway(mcpConfig([A, chaos('old', '--revision=2025-03-26')]));
    expect((await openSession(`${old.url}/mcp`)).initialize.result.protocolVersion).toBe('2025-03-26');
  });
});

describe('one of several targets that announces no list', () => {
  const CAPABILITIES: [string, unknown][] = [
    ['no members', {}],
    ['null', null],
    ['undefined', undefined],
    ['a text', 'x'],
    ['a list', []],
    ['only logging', { logging: {} }],
    ['an unknown member', { experimental: { x: {} } }],
  ];
  /** A server with one tool, whose prompts it does not know in one way or another. */
  const server = (capabilities: unknown, answer: Script) =>
    mcpUpstream({
      script: (request, response) => {
        const { message } = request;
        if (message?.method === 'initialize') {
          sessions.add('up-1');
          response.setHeader('mcp-session-id', 'up-1');
          const serverInfo = { name: 'up', version: '1' };
          reply(response, message, { protocolVersion: '2025-06-18', capabilities, serverInfo });
          return true;
        }
        return message?.method === 'prompts/list' && answer(request, response);
      },
    });
  let sessions = new Set<string>();
  const started = async (capabilities: unknown, answer: Script = () => false) => {
    const own = await server(capabilities, answer);
    sessions = own.sessions;
    return own;
  };

  test.each(CAPABILITIES)(
    'its tools are listed and called, with %s as capabilities',
    async (_, capabilities) => {
      await using one = await started(capabilities);
      const targets = [{ name: 'one', mcp: { host: one.url } }, chaos('two')];
      for (const backend of [{}, { prefixMode: 'never' }, { failureMode: 'failClosed' }]) {
        await using own = await gateway(mcpConfig(targets, { backend }));
        const name = 'prefixMode' in backend ? 'say' : 'one_say';
        const client = await openSession(`${own.url}/mcp`);
        expect(namesOf((await client.request('tools/list')).result.tools)).toContain(name);
        expect((await client.request('tools/call', { name })).result.content[0].text).toBe('up says say');
      }
    },
  );

  test('its tools are announced to clients if no target announces any', async () => {
    await using one = await started({});
    const targets = ['a', 'b'].map((name) => ({ name, mcp: { host: one.url } }));
    await using own = await gateway(mcpConfig(targets));
    const client = await openSession(`${own.url}/mcp`);
    expect(client.initialize.result.capabilities).toMatchObject({ tools: { listChanged: true } });
  });

  test.each<[string, Script]>([
    ['method not found', () => false],
    [
      'another error',
      ({ message }, response) => {
        reply(response, message, { error: { code: -32603, message: 'unknown method' } });
        return true;
      },
    ],
    [
      'HTTP 400',
      (_, response) => {
        response.writeHead(400).end('unknown method');
        return true;
      },
    ],
  ])('its missing lists are empty if it answers %s', async (_, answer) => {
    await using one = await started({}, answer);
    const targets = [{ name: 'one', mcp: { host: one.url } }, chaos('two', '--prompts=ask')];
    await using own = await gateway(mcpConfig(targets, { backend: { failureMode: 'failClosed' } }));
    const { result } = await (await openSession(`${own.url}/mcp`)).request('prompts/list');
    expect(namesOf(result.prompts)).toEqual(['two_ask']);
    expect(result).not.toHaveProperty('_meta');
  });
});

describe('tools', () => {
  test('tools/list over several targets follows the order of the configuration and prefixes names with the target', async () => {
    const { result } = await session.request('tools/list');
    expect(namesOf(result.tools)).toEqual(['a_echo', 'a_x_y', 'b-2.x_echo', 'b-2.x_other']);
    expect(result).not.toHaveProperty('nextCursor');
    expect(result).not.toHaveProperty('_meta');
  });

  test.each([
    ['a_x_y', 'a x_y'],
    ['b-2.x_other', 'b-2.x other'],
    ['b-2.x_never-listed', 'b-2.x never-listed'],
    ['a__', 'a _'],
  ])('tools/call of %s reaches its target under the name that the target knows', async (name, answer) => {
    const { result } = await session.request('tools/call', { name });
    expect(result.content[0].text).toBe(answer);
  });

  test.each(['echo', 'c_echo', '_echo', 'A_echo', ' a_echo', 'a', 'a-echo', '', 'a+echo', 'b-2_echo'])(
    'tools/call of %j, a name of no target, is invalid params',
    async (name) => {
      const { status, error } = await session.request('tools/call', { name });
      expect(status).toBe(200);
      expect(error).toEqual({ code: -32602, message: `Unknown tool: ${name}` });
    },
  );

  test.each([undefined, {}, { name: 7 }, { name: null }, { arguments: {} }])(
    'tools/call with params %j gives an error that names the missing member',
    async (params) => {
      const { error } = await session.request('tools/call', params);
      expect(error).toEqual({ code: -32602, message: 'expected params.name to be a string' });
    },
  );

  test('tools/call over several targets changes only the name of the tool', async () => {
    const text =
      '{"jsonrpc":"2.0","id":5,"params":{"arguments":{"name":"a_echo","n":1.0},"name":"a_\\u0072eceived"},"method":"tools/call"}';
    const own = await openSession(session.url);
    const response = await fetch(session.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream', 'mcp-session-id': own.id },
      body: text,
    });
    const line = (await response.text()).match(/^data: (.*)$/m)?.[1] as string;
    const received = JSON.parse(JSON.parse(line).result.content[0].text) as string[];
    expect(received.at(-1)).toMatch(
      /^\{"jsonrpc":"2\.0","id":\d+,"params":\{"arguments":\{"name":"a_echo","n":1\.0\},"name":"received"\},"method":"tools\/call"\}$/,
    );
  });
});

describe('prompts', () => {
  test('prompts/list collects the prompts of the targets that have any', async () => {
    expect(namesOf((await session.request('prompts/list')).result.prompts)).toEqual(['a_ask']);
  });

  test('prompts/get finds a prompt by its prefixed name', async () => {
    const { result } = await session.request('prompts/get', { name: 'a_ask' });
    expect(result.messages[0].content.text).toBe('a ask');
  });

  test('prompts/get of an unknown prompt is invalid params', async () => {
    const { error } = await session.request('prompts/get', { name: 'zz_ask' });
    expect(error).toEqual({ code: -32602, message: 'Unknown prompt: zz_ask' });
  });
});

describe('resources', () => {
  const LISTED = ['a+file:///1', 'ui://a+panel', 'b-2.x+file:///1'];

  test('resources/list names resources target+uri and keeps the scheme of app resources', async () => {
    expect(namesOf((await session.request('resources/list')).result.resources, 'uri')).toEqual(LISTED);
  });

  test('resources/templates/list names templates target+uri and keeps the scheme of app resources', async () => {
    const { result } = await session.request('resources/templates/list');
    expect(namesOf(result.resourceTemplates, 'uriTemplate')).toEqual(LISTED.map((uri) => `${uri}/{id}`));
  });

  test.each([
    ['a+file:///1', 'a file:///1'],
    ['b-2.x+file:///1', 'b-2.x file:///1'],
    ['ui://a+panel', 'a ui://panel'],
    ['a+made:up+uri?x=1+2', 'a made:up+uri?x=1+2'],
  ])(
    'resources/read of %s reaches its target, and the result names the URI that was requested',
    async (uri, text) => {
      const { result } = await session.request('resources/read', { uri });
      expect(result.contents).toEqual([{ uri, text }]);
    },
  );

  test.each(['file:///1', 'c+file:///1', '+x', 'ui://panel', 'ui://c+panel'])(
    'resources/read of %s, a URI of no target, is invalid params',
    async (uri) => {
      const { error } = await session.request('resources/read', { uri });
      expect(error).toEqual({ code: -32602, message: `Unknown resource: ${uri}` });
    },
  );

  test('resources that a tool result links to or embeds get URIs that the client can read', async () => {
    const { result } = await session.request('tools/call', { name: 'a_link' });
    expect(result.content).toEqual([
      { type: 'resource_link', uri: 'a+file:///linked', name: 'linked' },
      { type: 'resource', resource: { uri: 'a+file:///embedded', text: 'embedded' } },
      { type: 'text', text: 'file:///not-a-uri-member' },
    ]);
  });
});

describe('completion', () => {
  test.each([
    [{ type: 'ref/prompt', name: 'a_ask' }, 'a ask'],
    [{ type: 'ref/resource', uri: 'b-2.x+file:///1/{id}' }, 'b-2.x file:///1/{id}'],
    [{ type: 'ref/resource', uri: 'ui://a+panel/{id}' }, 'a ui://panel/{id}'],
  ])('completion/complete for %j reaches its target', async (ref, value) => {
    const argument = { name: 'x', value: 'y' };
    const { result } = await session.request('completion/complete', { ref, argument });
    expect(result.completion.values).toEqual([value]);
  });

  test('completion/complete for an unknown reference is invalid params', async () => {
    const ref = { type: 'ref/resource', uri: 'nope' };
    const { error } = await session.request('completion/complete', {
      ref,
      argument: { name: 'x', value: '' },
    });
    expect(error).toEqual({ code: -32602, message: 'Unknown resource: nope' });
  });
});

describe('methods without a single target', () => {
  test('ping is answered by the gateway', async () => {
    expect((await session.request('ping')).result).toEqual({});
  });

  test('logging/setLevel is sent to every target', async () => {
    const own = await openSession(session.url);
    expect((await own.request('logging/setLevel', { level: 'debug' })).result).toEqual({});
    for (const name of ['a', 'b-2.x']) {
      const { result } = await own.request('tools/call', { name: `${name}_received` });
      const levels = JSON.parse(result.content[0].text).map((line: string) => JSON.parse(line));
      expect(levels).toContainEqual(
        expect.objectContaining({ method: 'logging/setLevel', params: { level: 'debug' } }),
      );
    }
  });

  test('a method that cannot be routed to a target is Method not found', async () => {
    const { error } = await session.request('no/such');
    expect(error).toEqual({ code: -32601, message: 'method not found: no/such' });
  });

  test('client notifications are sent to every target', async () => {
    const own = await openSession(session.url);
    await own.send({ method: 'notifications/roots/list_changed' });
    for (const name of ['a', 'b-2.x']) {
      const { result } = await own.request('tools/call', { name: `${name}_received` });
      expect(result.content[0].text).toContain('notifications/roots/list_changed');
    }
  });
});
