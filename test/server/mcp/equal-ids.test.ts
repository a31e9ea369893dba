import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { type McpReply, type McpSession, openSession, post } from '../../kit/mcp.ts';

let gate: TestGateway;
let session: McpSession;
beforeAll(async () => {
  gate = await gateway(mcpConfig([chaos('a')]));
  session = await openSession(`${gate.url}/mcp`);
});
afterAll(() => gate.close());

/** Calls a tool under an id as it is written. */
const call = (id: string, name: string, args: object = {}): Promise<McpReply> =>
  post(
    session.url,
    `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${JSON.stringify({ name, arguments: args })}}`,
    { 'mcp-session-id': session.id },
  );

/** How often the child has been called with this message. */
async function calledWith(message: string): Promise<number> {
  const { result } = await call('"count"', 'received');
  return (JSON.parse(result.content[0].text) as string[]).filter((line) => line.includes(message)).length;
}

describe('duplicate request ids', () => {
  test.each([
    ['7', '7'],
    ['7', '7.0'],
    ['"a"', '"\\u0061"'],
    ['12345678901234567890', '12345678901234567890'],
  ])(
    'a request with the id of an in-flight request is rejected and does not run: %s and %s',
    async (first, second) => {
      const message = `once ${[first, second].join(' and ').replace(/\W/g, ' ')}`;
      const running = call(first, 'later', { ms: 300, message });
      await session.send({ id: 'sync', method: 'ping' });
      const { status, messages } = await call(second, 'later', { ms: 0, message });
      expect(status).toBe(400);
      expect(messages).toEqual([
        {
          jsonrpc: '2.0',
          id: null,
          error: {
            code: -32600,
            message: `a request with the id ${second} is in flight in this session: give each request its own id`,
          },
        },
      ]);
      expect((await running).result.content[0].text).toBe(message);
      expect(await calledWith(message)).toBe(1);
    },
  );

  test('request ids of different types and large numbers with different digits are not duplicates', async () => {
    const ids = ['7', '"7"', '9007199254740993', '9007199254740992'];
    const replies = await Promise.all(ids.map((id) => call(id, 'later', { ms: 50, message: id })));
    expect(replies.map(({ result }) => result?.content[0].text)).toEqual(ids);
  });
});

test('a request id can be reused as soon as its request has been answered or cancelled', async () => {
  for (let round = 0; round < 50; round += 1)
    expect((await call('1', 'echo', { message: `${round}` })).result.content[0].text).toBe(`${round}`);
  const hanging = call('1', 'hang').catch(() => undefined);
  await session.send({ id: 'sync', method: 'ping' });
  await session.send({ method: 'notifications/cancelled', params: { requestId: 1 } });
  expect((await call('1', 'echo', { message: 'again' })).result.content[0].text).toBe('again');
  await hanging;
});
