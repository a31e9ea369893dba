import { afterAll, describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { type Json, type McpReply, type McpSession, openSession, post } from '../../kit/mcp.ts';
import { mcpUpstream, reply, type Script } from '../../kit/mcp-upstream.ts';

// Each of these messages was, or could be, a way to reach an item that the rules forbid.

/** A deny-style rule: a message that it does not recognise would be forwarded. */
const NOT_SECRET = [
  {
    deny: '(has(mcp.tool) && mcp.tool.name == "secret") || (has(mcp.resource) && mcp.resource.name.contains("secret"))',
  },
];
const ONE = [chaos('one', '--tools=read,secret,received', '--prompts=greet', '--resources=file:///a')];
const TWO = [chaos('one', '--tools=read,secret,received'), chaos('two')];

interface Scene {
  readonly session: McpSession;
  /** Sends a raw body. */
  send(body: string): Promise<McpReply>;
  /** Messages that the first target has received since the last call, without those of this function. */
  received(): Promise<Json[]>;
}

const open = new Map<string, Promise<{ gate: TestGateway; session: McpSession }>>();
afterAll(async () => {
  for (const { gate } of await Promise.all(open.values())) await gate.close();
});

/** Runs a test in a session under these rules. Tests with the same rules and targets share one, in turn. */
async function scene(
  rules: readonly unknown[] | undefined,
  targets: readonly object[],
  run: (scene: Scene) => Promise<void>,
): Promise<void> {
  const route = rules === undefined ? {} : { policies: { mcpAuthorization: { rules } } };
  const yaml = mcpConfig(targets, { route });
  const opened = open.get(yaml) ?? gateway(yaml).then(begin);
  open.set(yaml, opened);
  const { session } = await opened;
  const name = targets.length > 1 ? 'one_received' : 'received';
  const all = async (): Promise<Json[]> => {
    const { result } = await session.request('tools/call', { name });
    const lines = JSON.parse(result.content[0].text).map((line: string) => JSON.parse(line));
    return lines.filter(({ params }: Json) => params?.name !== 'received');
  };
  const before = (await all()).length;
  await run({
    session,
    send: (body) => post(session.url, body, { 'mcp-session-id': session.id }),
    received: async () => (await all()).slice(before),
  });
}

const begin = async (gate: TestGateway): Promise<{ gate: TestGateway; session: McpSession }> => ({
  gate,
  session: await openSession(`${gate.url}/mcp`),
});

const body = (members: string): string => `{"jsonrpc":"2.0",${members}}`;

describe.each([
  ['one target', ONE],
  ['several targets', TWO],
])('MCP requests without an id, with %s', (what, targets) => {
  test.each([
    ['tools/call', '{"name":"secret","arguments":{}}'],
    ['tools/call', '{"name":"one_secret","arguments":{}}'],
    ['tools/call', '{"name":"read","arguments":{}}'],
    ['resources/read', '{"uri":"file:///a"}'],
    ['logging/setLevel', '{"level":"debug"}'],
    ['tasks/cancel', '{"taskId":"1"}'],
  ])(
    `a request without an id is rejected and reaches no target, with ${what}: %s %s`,
    async (method, params) => {
      for (const rules of [NOT_SECRET, undefined])
        await scene(rules, targets, async ({ send, received }) => {
          const reply = await send(body(`"method":"${method}","params":${params}`));
          expect(reply.status).toBe(400);
          expect(reply.messages).toEqual([
            {
              jsonrpc: '2.0',
              id: null,
              error: {
                code: -32600,
                message: `${method} is a request: it needs an "id"`,
              },
            },
          ]);
          expect(await received()).toEqual([]);
        });
    },
  );
});

describe('MCP notifications', () => {
  test.each([
    'notifications/secret',
    'notifications/message',
    'tools/call ',
    'notifications/initialized ',
    'Notifications/cancelled',
    '',
    'constructor',
    '__proto__',
  ])('a notification of the unknown method %j is rejected and reaches no target', async (method) => {
    await scene(undefined, ONE, async ({ send, received }) => {
      const reply = await send(body(`"method":${JSON.stringify(method)},"params":{"name":"secret"}`));
      expect(reply.status).toBe(400);
      expect(reply.messages[0]).toMatchObject({ id: null, error: { code: -32601 } });
      expect(await received()).toEqual([]);
    });
  });

  test('a notification of the protocol reaches the target with mcpAuthorization rules', async () => {
    await scene(NOT_SECRET, ONE, async ({ send, received }) => {
      expect((await send(body('"method":"notifications/roots/list_changed"'))).status).toBe(202);
      expect((await received()).map(({ method }) => method)).toEqual(['notifications/roots/list_changed']);
    });
  });

  test('a notification method with an id is rejected as an unknown request', async () => {
    await scene(undefined, ONE, async ({ send, received }) => {
      const { error } = await send(
        body('"id":1,"method":"notifications/cancelled","params":{"requestId":1}'),
      );
      expect(error).toMatchObject({ code: -32601 });
      expect(await received()).toEqual([]);
    });
  });
});

describe('names of MCP items', () => {
  test.each([
    ['tools/call', '{"name":["secret"]}', 'name'],
    ['tools/call', '{"name":{"secret":1}}', 'name'],
    ['tools/call', '{"name":null}', 'name'],
    ['tools/call', '{"name":7}', 'name'],
    ['tools/call', '{"Name1":"secret"}', 'name'],
    ['tools/call', '{}', 'name'],
    ['prompts/get', '{"name":["greet"]}', 'name'],
    ['resources/read', '{"uri":["file:///secret"]}', 'uri'],
    ['resources/subscribe', '{"uri":{"a":"file:///secret"}}', 'uri'],
    ['resources/unsubscribe', '{}', 'uri'],
    ['completion/complete', '{"ref":{"type":"ref/prompt","name":["x"]}}', 'ref.name'],
    ['completion/complete', '{"ref":{"type":"ref/resource","uri":["secret"]}}', 'ref.uri'],
    ['tasks/get', '{"taskId":7}', 'taskId'],
    ['tasks/result', '{}', 'taskId'],
    ['tasks/cancel', '{"taskId":["1"]}', 'taskId'],
  ])('an item name that is not a string is rejected: %s %s', async (method, params, place) => {
    await scene(NOT_SECRET, ONE, async ({ send, received }) => {
      const { error } = await send(body(`"id":1,"method":"${method}","params":${params}`));
      expect(error).toEqual({ code: -32602, message: `expected params.${place} to be a string` });
      expect(await received()).toEqual([]);
    });
  });

  test.each(['"secret\\u0000"', '"secret\\ud800"', '"\\udc00secret"'])(
    'an item name that parsers read differently is rejected: %s',
    async (name) => {
      await scene(NOT_SECRET, ONE, async ({ send, received }) => {
        const { error } = await send(body(`"id":1,"method":"tools/call","params":{"name":${name}}`));
        expect(error).toEqual({
          code: -32602,
          message: 'expected params.name to be a string without NUL and lone surrogates',
        });
        expect(await received()).toEqual([]);
      });
    },
  );

  test.each([
    '"method":"tools/call","params":{"name":"s\\u0065cret"}',
    '"method":"tools\\/call","params":{"name":"secret"}',
    '"m\\u0065thod":"t\\u006fols/call","p\\u0061rams":{"n\\u0061me":"\\u0073ecret"}',
  ])('an item name or method with JSON escapes is authorized as its decoded text: {%s}', async (members) => {
    await scene(NOT_SECRET, ONE, async ({ send, received }) => {
      const { error } = await send(body(`"id":1,${members}`));
      expect(error).toEqual({ code: -32602, message: 'Unknown tool: secret' });
      expect(await received()).toEqual([]);
    });
  });

  test.each([
    ['"ref":{"type":"ref/resource","uri":"a","uri":"secret"}', 'duplicate key "uri"'],
    [
      '"ref":{"type":"ref/resource","uri":"a","URI":"secret"}',
      'the key "URI" differs from "uri" in case only',
    ],
    ['"ref":{"type":"ref/prompt","name":"a","uri":"secret","type":"ref/resource"}', 'duplicate key "type"'],
    ['"taskId":"a","taskid":"b"', 'the key "taskid" differs from "taskId" in case only'],
    ['"_meta":{"progressToken":1,"progressToken":2}', 'duplicate key "progressToken"'],
  ])('a duplicate key is rejected inside %s', async (params, message) => {
    await scene(NOT_SECRET, ONE, async ({ send, received }) => {
      const reply = await send(
        body(`"id":1,"method":"completion/complete","params":{${params},"argument":{}}`),
      );
      expect(reply.status).toBe(400);
      expect(reply.error).toEqual({ code: -32600, message });
      expect(await received()).toEqual([]);
    });
  });

  test('a completion reference of an unknown type is rejected regardless of its members', async () => {
    await scene(NOT_SECRET, ONE, async ({ send, received }) => {
      for (const ref of ['{"type":"ref/tool","name":"secret"}', '{"name":"x","uri":"a"}', '"x"', 'null']) {
        const { error } = await send(
          body(`"id":1,"method":"completion/complete","params":{"ref":${ref},"argument":{}}`),
        );
        expect(error, ref).toEqual({
          code: -32602,
          message: 'expected params.ref.type to be "ref/prompt" or "ref/resource"',
        });
      }
      expect(await received()).toEqual([]);
    });
  });
});

describe('MCP methods', () => {
  test.each([
    'tools/call ',
    ' tools/call',
    'TOOLS/CALL',
    'Tools/call',
    'tools/call\\u0000',
    'tools//call',
    'tools/invoke',
    'x/secret',
    'constructor',
    '__proto__',
    'subscriptions/listen',
    'server/discover',
    '',
  ])('a method unknown to the protocol is rejected under mcpAuthorization: %j', async (method) => {
    await scene(NOT_SECRET, ONE, async ({ send, received }) => {
      const { error } = await send(
        body(`"id":1,"method":"${method}","params":{"name":"secret","uri":"file:///secret"}`),
      );
      expect(error).toMatchObject({ code: -32601 });
      expect(error.message).toMatch(/^method not found: /);
      expect(await received()).toEqual([]);
    });
  });

  test('a method unknown to the protocol is forwarded without mcpAuthorization', async () => {
    await scene(undefined, ONE, async ({ session, received }) => {
      expect((await session.request('vendor/thing', { a: 1 })).error.message).toBe('no method vendor/thing');
      await session.request('constructor', {});
      expect((await received()).map(({ method }) => method)).toEqual(['vendor/thing', 'constructor']);
    });
  });

  test.each(['ping', 'logging/setLevel'])(
    'a method without an item works under mcpAuthorization: %s',
    async (method) => {
      await scene(['mcp.tool.name == "received"'], ONE, async ({ session }) => {
        expect((await session.request(method, { level: 'info' })).result).toEqual({});
      });
    },
  );
});

describe('MCP tasks', () => {
  const RULES = ['mcp.tool.name == "received"', 'mcp.task.name == "mine" && mcp.task.target == "one"'];

  test.each(['tasks/get', 'tasks/result', 'tasks/cancel'])(
    'mcpAuthorization applies mcp.task rules to %s',
    async (method) => {
      await scene(RULES, ONE, async ({ session, received }) => {
        expect((await session.request(method, { taskId: 'other' })).error).toEqual({
          code: -32602,
          message: 'Unknown task: other',
        });
        // The target has no tasks and answers so, which shows that it was called.
        expect((await session.request(method, { taskId: 'mine' })).error.message).toBe(`no method ${method}`);
        expect((await received()).map(({ params }) => params.taskId)).toEqual(['mine']);
      });
    },
  );

  test('mcpAuthorization removes tasks from tasks/list unless a rule allows them', async () => {
    const script: Script = ({ message }, response) => {
      if (message?.method !== 'tasks/list') return false;
      reply(response, message, { tasks: ['mine', 'other'].map((taskId) => ({ taskId, status: 'working' })) });
      return true;
    };
    await using up = await mcpUpstream({ script, capabilities: { tools: {}, tasks: { list: {} } } });
    const route = { policies: { mcpAuthorization: { rules: RULES } } };
    await using gate = await gateway(mcpConfig([{ name: 'one', mcp: { host: up.url } }], { route }));
    const session = await openSession(`${gate.url}/mcp`);
    const { result } = await session.request('tasks/list');
    expect(result.tasks).toEqual([{ taskId: 'mine', status: 'working' }]);
  });
});
