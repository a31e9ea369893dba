import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { messageOf } from '../../../src/core/errors.ts';
import { ERAS } from '../../kit/both-eras.ts';
import { mcpConfig } from '../../kit/config.ts';
import { gateway, parseAccessLine, type TestGateway } from '../../kit/gateway.ts';
import { type McpReply, openSession, post, toolCall } from '../../kit/mcp.ts';
import { mcpUpstream } from '../../kit/mcp-upstream.ts';
import type { Answers } from '../../kit/scripted-answers.ts';
import { overHttp, overStdio, type ScriptedServer, TRANSPORTS } from '../../kit/scripted-server.ts';
import { until } from '../../kit/until.ts';

// JSON-RPC responses that servers send and the specification does not allow. The client always gets one that it allows, and
// the gateway and its access log go on.

/** A response to a call with these members, as JSON text. */
const response = (members: string): Answers => ({ 'tools/call': `{"jsonrpc":"2.0","id":@id,${members}}` });

const RESULT = '"result":{"content":[]}';

/** The members of the response, and what the client gets of it. */
const SHAPES: [members: string, expected: object][] = [
  // JSON-RPC 1.0 has both members in each response.
  [`${RESULT},"error":null`, { result: { content: [] } }],
  [`"error":null,${RESULT}`, { result: { content: [] } }],
  [`"method":null,"params":null,${RESULT},"error":null`, { result: { content: [] } }],
  [`${RESULT},"error":false`, { result: { content: [] } }],
  [`${RESULT},"error":{}`, { result: { content: [] } }],
  [`"result":null,"error":{"code":-32602,"message":"bad"}`, { error: { code: -32602, message: 'bad' } }],
  [`${RESULT},"error":{"code":-32602,"message":"bad"}`, { error: { code: -32602, message: 'bad' } }],
  ['"result":null', { result: { content: [] } }],
  // docker/mcp-gateway#505: a server that no longer knows the session answers without saying so.
  ['"result":{}', { result: { content: [] } }],
  [
    '"status":"ok"',
    { error: { code: -32603, message: expect.stringContaining('neither a result nor an error') } },
  ],
  ['"result":[1]', { error: { code: -32603, message: expect.stringContaining('not an object'), data: [1] } }],
  [
    '"result":"ok"',
    { error: { code: -32603, message: expect.stringContaining('not an object'), data: 'ok' } },
  ],
  [
    '"error":null',
    { error: { code: -32603, message: expect.stringContaining('neither a result nor an error') } },
  ],
  // Java: the message of an exception is null (spring-ai#3009 and others).
  [
    '"error":{"code":-32603,"message":null}',
    { error: { code: -32603, message: 'the server gave no reason' } },
  ],
  ['"error":{"code":-32603}', { error: { code: -32603, message: 'the server gave no reason' } }],
  ['"error":{"code":-32603,"message":5}', { error: { code: -32603, message: '5' } }],
  ['"error":{"code":-32603,"message":true}', { error: { code: -32603, message: 'true' } }],
  ['"error":{"code":-32603,"message":{"text":"x"}}', { error: { code: -32603, message: '{"text":"x"}' } }],
  ['"error":{"code":-32603,"message":["x"]}', { error: { code: -32603, message: '["x"]' } }],
  ['"error":{"code":-1,"message":null,"data":{"n":1.0}}', { error: { code: -1, data: { n: 1 } } }],
  ['"error":{"code":"-32602","message":"m"}', { error: { code: -32602, message: 'm' } }],
  [
    '"error":{"code":"E1","message":"m"}',
    { error: { code: -32603, message: 'm', data: { code: 'E1', message: 'm' } } },
  ],
  ['"error":{"code":[5],"message":"m"}', { error: { code: -32603, message: 'm', data: { code: [5] } } }],
  ['"error":{"code":null,"message":"m"}', { error: { code: -32603, message: 'm' } }],
  ['"error":{"code":1.5,"message":"m"}', { error: { code: -32603, message: 'm', data: { code: 1.5 } } }],
  ['"error":{"code":1e400,"message":"m"}', { error: { code: -32603, message: 'm' } }],
  ['"error":{"code":9007199254740993,"message":"m"}', { error: { code: -32603, message: 'm' } }],
  ['"error":{"message":"m"}', { error: { code: -32603, message: 'm' } }],
  ['"error":"text"', { error: { code: -32603, message: 'text', data: 'text' } }],
  ['"error":5', { error: { code: -32603, message: '5' } }],
  ['"error":true', { error: { code: -32603, message: 'true' } }],
  ['"error":["a"]', { error: { code: -32603, message: '["a"]' } }],
  ['"error":{}', { error: { code: -32603, message: expect.stringContaining('neither') } }],
];

/** A response as JSON-RPC 2.0 §5 defines it. */
function expectValid({ messages }: McpReply, id: number): void {
  expect(messages).toHaveLength(1);
  const [{ jsonrpc, id: own, result, error, ...others }] = messages;
  expect({ jsonrpc, id: own, others }).toEqual({ jsonrpc: '2.0', id, others: {} });
  if (result !== undefined) expect(error).toBeUndefined();
  else expect(error).toMatchObject({ code: expect.any(Number), message: expect.any(String) });
}

/** A server with a tool for each shape, which answers calls with it. */
const TOOLS = SHAPES.map((_, at) => ({ name: `t${at}`, inputSchema: { type: 'object' } }));
const ALL_SHAPES: Answers = {
  'tools/list': `{"jsonrpc":"2.0","id":@id,"result":${JSON.stringify({ tools: TOOLS })}}`,
  ...Object.fromEntries(
    SHAPES.map(([members], at) => [`tools/call t${at}`, `{"jsonrpc":"2.0","id":@id,${members}}`]),
  ),
};
const SHAPES_OF_TOOLS = SHAPES.map(([members, expected], at) => [members, expected, at] as const);

describe.each(TRANSPORTS)('a server over %s', (_name, start) => {
  let server: ScriptedServer;
  let gate: TestGateway;
  let session: Awaited<ReturnType<typeof openSession>>;
  beforeAll(async () => {
    server = await start(ALL_SHAPES);
    gate = await gateway(mcpConfig([server.target]));
    session = await openSession(`${gate.url}/mcp`);
  });
  afterAll(async () => {
    await gate.close();
    await server[Symbol.asyncDispose]();
  });

  test.each(SHAPES_OF_TOOLS)('that answers a call with %s', async (_members, expected, at) => {
    const reply = await session.send(toolCall(7, `t${at}`));
    expectValid(reply, 7);
    expect(reply.messages[0]).toMatchObject(expected);
    const { error } = reply;
    const logged = (): string | undefined => gate.accessLog.find((line) => line.includes(`=t${at} `));
    await until(() => logged() !== undefined);
    const line = parseAccessLine(logged() ?? '');
    expect(line['mcp.error.code']).toBe(error === undefined ? undefined : String(error.code));
  });

  test('goes on after all of them', async () => {
    expect((await session.request('tools/list')).result.tools).toHaveLength(SHAPES.length);
  });

  test('that answers every request with "error": null beside the result', async () => {
    const both = (result: string): string => `{"jsonrpc":"2.0","id":@id,"result":${result},"error":null}`;
    await using server = await start({
      initialize: both(
        '{"protocolVersion":@version,"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}',
      ),
      'tools/list': both('{"tools":[{"name":"t"}],"nextCursor":null}'),
      'tools/call': both('{"content":[]}'),
      ping: both('null'),
    });
    await using gate = await gateway(mcpConfig([server.target]));
    const session = await openSession(`${gate.url}/mcp`);
    expectValid(session.initialize, 0);
    expect((await session.request('tools/list')).result).toMatchObject({ tools: [{ name: 't' }] });
    expect((await session.request('tools/call', { name: 't' })).result).toEqual({ content: [] });
    expect((await session.request('ping')).result).toEqual({});
  });

  test('whose error has a data member keeps the text of that member', async () => {
    await using server = await start(
      response('"error":{"code":"7","message":null,"data":{"big":9007199254740993,"one":1.0}}'),
    );
    await using gate = await gateway(mcpConfig([server.target]));
    const session = await openSession(`${gate.url}/mcp`);
    expect((await session.send(toolCall(7, 't'))).text).toContain(
      '{"code":7,"message":"the server gave no reason","data":{"big":9007199254740993,"one":1.0}}',
    );
  });
});

describe.each(TRANSPORTS)('a notification over %s', (_name, start) => {
  test('with "params": null and "id": null reaches the client without them', async () => {
    await using server = await start({
      'tools/call': [
        '{"jsonrpc":"2.0","id":null,"method":"notifications/message","params":{"data":"x"},"error":null}',
        '{"jsonrpc":"2.0","method":"notifications/message","params":null}',
        '{"jsonrpc":"2.0","id":@id,"result":{"content":[]}}',
      ],
    });
    await using gate = await gateway(mcpConfig([server.target]));
    const session = await openSession(`${gate.url}/mcp`);
    const { messages } = await session.send(toolCall(7, 't'));
    expect(messages).toEqual([
      { jsonrpc: '2.0', method: 'notifications/message', params: { data: 'x' } },
      { jsonrpc: '2.0', method: 'notifications/message' },
      { jsonrpc: '2.0', id: 7, result: { content: [] } },
    ]);
  });
});

test('a server of several that answers calls with each of these', async () => {
  await using server = await overHttp(ALL_SHAPES);
  await using other = await overHttp({}, 'b');
  await using gate = await gateway(mcpConfig([server.target, other.target]));
  const session = await openSession(`${gate.url}/mcp`);
  for (const [members, expected, at] of SHAPES_OF_TOOLS) {
    const reply = await session.send(toolCall(7, `a_t${at}`));
    expectValid(reply, 7);
    expect(reply.messages[0], members).toMatchObject(expected);
  }
});

describe.each(ERAS)('a caller of revision %s', (_revision, connect) => {
  test.each([
    ['"2099-01-01"', 'it chose the protocol revision "2099-01-01" in initialize'],
    ['"2024-10-07"', 'it chose the protocol revision "2024-10-07" in initialize'],
    ['"2026-07-28"', 'it chose the protocol revision "2026-07-28" in initialize'],
    ['""', 'it chose the protocol revision "" in initialize'],
    ['20251125', 'it chose the protocol revision 20251125 in initialize'],
    ['{"a":1}', 'it chose the protocol revision {"a":1} in initialize'],
    ['null', 'its initialize result has no protocolVersion'],
  ])('is told at once which revision the server chose: %s', async (version, problem) => {
    await using server = await overHttp({
      initialize: `{"jsonrpc":"2.0","id":@id,"result":{"protocolVersion":${version},"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`,
    });
    await using gate = await gateway(mcpConfig([server.target]));
    const reply = connect(`${gate.url}/mcp`).then((caller) => caller.ask('tools/list'));
    const said = await reply.then(({ text }) => text, messageOf);
    expect(said.replaceAll('\\"', '"')).toContain(`target "a"`);
    expect(said.replaceAll('\\"', '"')).toContain(
      `${problem}: expected one of 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25`,
    );
  });

  test.each(['null', '[]', '"x"', '7', 'true'])(
    'gets lists of a server whose description has members %s',
    async (odd) => {
      await using server = await overHttp({
        initialize: `{"jsonrpc":"2.0","id":@id,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":${odd},"prompts":{}},"serverInfo":${odd},"instructions":${odd},"_meta":${odd}}}`,
      });
      await using other = await overHttp({}, 'b');
      await using gate = await gateway(mcpConfig([server.target, other.target]));
      const caller = await connect(`${gate.url}/mcp`);
      const { result } = await caller.ask('tools/list');
      expect(result.tools.map(({ name }: { name: string }) => name)).toEqual(['a_t', 'b_t']);
    },
  );
});

describe('an event stream', () => {
  test.each(['ping', 'heartbeat', 'endpoint', 'error'])(
    'may have events of the type %s, which are no messages',
    async (type) => {
      await using upstream = await mcpUpstream({
        script: ({ message }, response) => {
          if (message?.method !== 'tools/call') return false;
          const forged = JSON.stringify({ jsonrpc: '2.0', id: message.id, result: { forged: true } });
          const result = JSON.stringify({ jsonrpc: '2.0', id: message.id, result: { content: [] } });
          response.writeHead(200, { 'content-type': 'text/event-stream' });
          response.end(
            `: hi\n\nevent: ${type}\ndata: now\n\nevent: ${type}\ndata: ${forged}\n\nevent: message\ndata: ${result}\n\n`,
          );
          return true;
        },
      });
      await using gate = await gateway(mcpConfig([{ name: 'a', mcp: { host: upstream.url } }]));
      const session = await openSession(`${gate.url}/mcp`);
      expect((await session.send(toolCall(7, 't'))).result).toEqual({ content: [] });
      expect(gate.log.filter((line) => line.includes('is not a JSON-RPC message'))).toEqual([]);
    },
  );
});

describe('members whose conversion to text throws', () => {
  const ODD = '{"toString":null,"valueOf":null}';
  const notification = (method: string, params: string): string =>
    `{"jsonrpc":"2.0","method":"${method}","params":${params}}`;
  const answers: Answers = {
    'tools/call': [
      notification('notifications/resources/updated', `{"uri":${ODD}}`),
      notification('notifications/message', `{"level":${ODD},"data":1}`),
      notification('notifications/progress', `{"progressToken":${ODD},"progress":1}`),
      notification('notifications/cancelled', `{"requestId":${ODD}}`),
      notification('notifications/message', `{"_meta":${ODD},"data":1}`),
      `{"jsonrpc":"2.0","id":${ODD},"result":{}}`,
      '{"jsonrpc":"2.0","id":@id,"result":{"content":[]}}',
    ],
  };

  test.each(ERAS)('in messages of a shared server end nothing (revision %s)', async (_revision, connect) => {
    const { target } = overStdio(answers);
    const shared = { ...target, stdio: { ...target.stdio, shared: true } };
    await using gate = await gateway(mcpConfig([shared]));
    const caller = await connect(`${gate.url}/mcp`);
    expect((await caller.call('t')).result).toMatchObject({ content: [] });
  });

  test.each(ERAS)('in messages of a server end nothing (revision %s)', async (_revision, connect) => {
    await using gate = await gateway(mcpConfig([overStdio(answers).target]));
    const caller = await connect(`${gate.url}/mcp`);
    expect((await caller.call('t')).result).toMatchObject({ content: [] });
  });

  test('in the revision of a client are refused with the id of the request', async () => {
    await using gate = await gateway(mcpConfig([overStdio({}).target]));
    const meta = `{"io.modelcontextprotocol/protocolVersion":${ODD}}`;
    const body = `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":${meta}}}`;
    const { status, messages } = await post(`${gate.url}/mcp`, body);
    expect([status, messages]).toMatchObject([400, [{ id: 7, error: { code: -32022 } }]]);
  });
});

describe('a number or length that a server chose', () => {
  const answer = (result: string): string => `{"jsonrpc":"2.0","id":@id,"result":${result}}`;

  test.each(['1e400', '-1e400', '9007199254740993', '-1', '1e21', '"x"', '{}'])(
    'is passed on as %s in ttl, pollInterval and progress, and drives nothing',
    async (number) => {
      const task = `{"taskId":"1","status":"working","ttl":${number},"pollInterval":${number},"createdAt":"x"}`;
      await using server = await overHttp(
        {
          'tools/call': [
            `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":@token,"progress":${number},"total":${number}}}`,
            answer(`{"task":${task}}`),
          ],
        },
        'a',
        'events',
      );
      await using gate = await gateway(mcpConfig([server.target]));
      const session = await openSession(`${gate.url}/mcp`);
      const { text } = await session.send(toolCall(7, 't', {}, { progressToken: 5 }));
      expect(text).toContain(`"ttl":${number},"pollInterval":${number}`);
      expect(text).toContain(`"progress":${number},"total":${number}`);
    },
  );

  test('is no bound for the message of an error, of which the log keeps the beginning', async () => {
    const message = 'x'.repeat(2_000_000);
    await using server = await overHttp(response(`"error":{"code":-32603,"message":"${message}"}`));
    await using gate = await gateway(mcpConfig([server.target]));
    const session = await openSession(`${gate.url}/mcp`);
    expect((await session.send(toolCall(7, 't'))).error.message).toBe(message);
    expect((await gate.accessLine(3))['mcp.error.message']?.length).toBeLessThan(2_000);
  });
});
