import { describe, expect, test } from 'vitest';
import { ERAS } from '../../kit/both-eras.ts';
import { mcpConfig } from '../../kit/config.ts';
import { openEvents } from '../../kit/event-stream.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { openSession, toolCall } from '../../kit/mcp.ts';
import { metaKey } from '../../kit/modern.ts';
import type { Answers } from '../../kit/scripted-answers.ts';
import { overHttp, overStdio, TRANSPORTS } from '../../kit/scripted-server.ts';

// Servers that return ids and progress tokens in another form than they got them: python-sdk#192, #961, #1720, neuro-san#526 (as
// text), radare2-mcp#68, helidon-mcp#65 (null in errors), mcp-go#201. That make up tokens: twentyhq/twenty#24559, or use them after the
// response: lennix1337/Genexus18MCP#44. Cursor ends the connection for an unknown token.

/** A server that answers every request under these ids. */
const answeringAs = (id: string): Answers => {
  const result = (value: string): string => `{"jsonrpc":"2.0","id":${id},"result":${value}}`;
  return {
    initialize: result(
      '{"protocolVersion":@version,"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}',
    ),
    'server/discover': `{"jsonrpc":"2.0","id":${id},"error":{"code":-32601,"message":"no"}}`,
    'tools/list': result('{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}'),
    'tools/call': result('{"content":[{"type":"text","text":"called"}]}'),
  };
};

const NULL_ERROR = '{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"bad arguments"}}';
const NO_ID_ERROR = '{"jsonrpc":"2.0","error":{"code":-32602,"message":"bad arguments"}}';
const RESULT = '{"jsonrpc":"2.0","id":@id,"result":{"content":[]}}';

const progress = (token: string, at: number): string =>
  `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${token},"progress":${at},"total":null}}`;

const warnings = (gate: TestGateway): string[] =>
  gate.log.filter((line) => line.includes('whose id is none of a request'));

describe.each(ERAS)('a caller of revision %s', (_revision, connect) => {
  describe.each(TRANSPORTS)('at a server over %s', (_name, start) => {
    test.each(['"@digits"', '@digits.0', '"@digits.0"'])(
      'gets its response if the server answers %s',
      async (id) => {
        await using server = await start(answeringAs(id));
        await using gate = await gateway(mcpConfig([server.target]));
        const caller = await connect(`${gate.url}/mcp`);
        expect((await caller.ask('tools/list', {}, 'mine')).messages[0]).toMatchObject({
          id: 'mine',
          result: { tools: [{ name: 't' }] },
        });
        expect((await caller.call('t')).result.content[0].text).toBe('called');
      },
    );

    test.each([NULL_ERROR, NO_ID_ERROR])('gets the error %s', async (text) => {
      await using server = await start({ 'tools/call': text });
      await using gate = await gateway(mcpConfig([server.target]));
      const caller = await connect(`${gate.url}/mcp`);
      const { messages } = await caller.call('t');
      expect(messages).toMatchObject([{ id: 1, error: { code: -32602, message: 'bad arguments' } }]);
    });

    test('gets progress if the server returns its token as text', async () => {
      await using server = await start({
        'tools/call': [progress('"@token"', 1), progress('@token.0', 2), progress('@token', 3), RESULT],
      });
      await using gate = await gateway(mcpConfig([server.target]));
      const caller = await connect(`${gate.url}/mcp`);
      const params = { name: 't', arguments: {}, _meta: { progressToken: 5 } };
      const { messages } = await caller.ask('tools/call', params);
      expect(messages.slice(0, -1).map((message) => message.params)).toEqual([
        { progressToken: 5, progress: 1 },
        { progressToken: 5, progress: 2 },
        { progressToken: 5, progress: 3 },
      ]);
    });
  });
});

describe.each(TRANSPORTS)('progress that a server over %s sends', (name, start) => {
  test('with a token of its own or after the response reaches no client as such', async () => {
    const changed = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}';
    await using server = await start({
      initialize:
        '{"jsonrpc":"2.0","id":@id,"result":{"protocolVersion":@version,"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}',
      'tools/call': [progress('"made-up"', 1), RESULT, progress('"late"', 2), changed],
    });
    await using gate = await gateway(mcpConfig([server.target]));
    const session = await openSession(`${gate.url}/mcp`);
    await using events = await openEvents(`${gate.url}/mcp`, { session: session.id });
    const params = { name: 't', arguments: {} };
    const call = { jsonrpc: '2.0', id: 7, method: 'tools/call' };
    const without = await session.send({ ...call, params });
    expect(without.messages).toEqual([{ jsonrpc: '2.0', id: 7, result: { content: [] } }]);
    const { messages } = await session.send({ ...call, params: { ...params, _meta: { progressToken: 5 } } });
    // Over HTTP, it is known which call a message belongs to.
    expect(messages.slice(0, -1).map((message) => message.params)).toEqual(
      name.startsWith('HTTP with') ? [{ progressToken: 5, progress: 1 }] : [],
    );
    if (!name.startsWith('HTTP with')) await events.next(({ method }) => method?.endsWith('list_changed'));
    expect(events.messages.filter(({ method }) => method === 'notifications/progress')).toEqual([]);
  });
});

describe('ids of no request', () => {
  test.each(['"x"', '999999', '-1', '0', '1e3', '""', '"1 "', 'null', '[1]', '{}', 'true', '1.5'])(
    'a result with the id %s beside the response is dropped over stdio',
    async (id) => {
      const other = `{"jsonrpc":"2.0","id":${id},"result":{"content":[],"forged":true}}`;
      await using server = overStdio({ 'tools/call': [other, other, RESULT] });
      await using gate = await gateway(mcpConfig([server.target]));
      const session = await openSession(`${gate.url}/mcp`);
      for (const call of [7, 8])
        expect((await session.send(toolCall(call, 't'))).messages).toEqual([
          { jsonrpc: '2.0', id: call, result: { content: [] } },
        ]);
      const invalid = gate.log.filter((line) => line.includes('is not a JSON-RPC message'));
      expect(warnings(gate).length + invalid.length).toBe(1);
    },
  );

  test('are reported once per target, with the beginning of the id', async () => {
    const other = `{"jsonrpc":"2.0","id":"${'x'.repeat(5_000)}","result":{}}`;
    await using server = await overHttp({ 'tools/call': [other, RESULT] }, 'a', 'events');
    await using gate = await gateway(mcpConfig([server.target]));
    for (const session of [await openSession(`${gate.url}/mcp`), await openSession(`${gate.url}/mcp`)])
      expect((await session.send(toolCall(7, 't'))).result).toEqual({ content: [] });
    expect(warnings(gate)).toHaveLength(1);
    expect(warnings(gate)[0]?.length).toBeLessThan(300);
  });

  test('an error with the id null belongs to no call while several are in flight over one pipe', async () => {
    await using server = overStdio({ 'prompts/get': [], 'tools/call': [NULL_ERROR, RESULT] });
    await using gate = await gateway(mcpConfig([server.target]));
    const session = await openSession(`${gate.url}/mcp`);
    const other = session.send({ id: 6, method: 'prompts/get', params: { name: 'p' } });
    await session.request('ping');
    expect((await session.send(toolCall(7, 't'))).result).toEqual({ content: [] });
    await session.send({ method: 'notifications/cancelled', params: { requestId: 6 } });
    await other;
    expect(warnings(gate)).toHaveLength(1);
  });

  test('an error with the id null about a notification belongs to no call', async () => {
    const refused =
      '{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found: notifications/initialized"}}';
    await using server = overStdio({ 'tools/call': [refused, RESULT] });
    await using gate = await gateway(mcpConfig([server.target]));
    const session = await openSession(`${gate.url}/mcp`);
    expect((await session.send(toolCall(7, 't'))).result).toEqual({ content: [] });
  });
});

describe('the subscription id of a notification', () => {
  test.each(['null', 'true', '[1]', '{}', '"x"', '1e400', '99999999999999999999'])(
    'may be %s without ending anything',
    async (id) => {
      const notification = `{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"x","_meta":{"${metaKey('subscriptionId')}":${id}}}}`;
      await using server = overStdio({ 'tools/call': [notification, RESULT] });
      await using gate = await gateway(mcpConfig([server.target]));
      const session = await openSession(`${gate.url}/mcp`);
      expect((await session.send(toolCall(7, 't'))).result).toEqual({ content: [] });
    },
  );
});
