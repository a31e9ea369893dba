import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../../../kit/config.ts';
import { gateway, type TestGateway } from '../../../../kit/gateway.ts';
import { type McpReply, type McpSession, openSession } from '../../../../kit/mcp.ts';
import { until } from '../../../../kit/until.ts';

let gate: TestGateway;
let session: McpSession;
beforeAll(async () => {
  gate = await gateway(mcpConfig([chaos('a')]));
  session = await openSession(`${gate.url}/mcp`);
});
afterAll(() => gate.close());

const base64 = (bytes: string | Uint8Array): string => Buffer.from(bytes).toString('base64');

/** Lets the child write these pieces, each in a write of its own, and then answer. */
const emit = (pieces: readonly (string | Uint8Array)[], from = session): Promise<McpReply> =>
  from.request('tools/call', { name: 'emit', arguments: { pieces: pieces.map(base64) } });

const logged = (text: string): boolean => gate.log.some((line) => line.includes(text));

describe('stdio lines', () => {
  test('a stdio message split at any byte, even inside a character, arrives whole', async () => {
    const line = Buffer.from('{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"é😀"}}\n');
    // Every byte in a write of its own: both multi-byte characters are cut at each place.
    const { messages } = await emit(Array.from(line, (byte) => Uint8Array.of(byte)));
    expect(messages[0].params).toEqual({ data: 'é😀' });
    expect(messages[1].result.content[0].text).toBe('emitted');
  });

  test('a stdio server that reads lines with readline gets a call with the line ends of Unicode as one line', async () => {
    const message = 'a\u2028b\u2029c\u0085d\\\u2028';
    const params = { name: 'echo', arguments: { message } };
    const { messages } = await session.request('tools/call', params);
    expect(messages[0].result.content[0].text).toBe(message);
  });

  test('several stdio messages in one write are read as several messages', async () => {
    const line = (n: number) => `{"jsonrpc":"2.0","method":"notifications/message","params":{"n":${n}}}\n`;
    const { messages } = await emit([line(1) + line(2) + line(3).slice(0, 20), line(3).slice(20)]);
    expect(messages.slice(0, 3).map(({ params }) => params.n)).toEqual([1, 2, 3]);
  });

  test('stdio messages may end with CRLF and be separated by empty lines', async () => {
    const { messages } = await emit([
      '\r\n\n  \n{"jsonrpc":"2.0","method":"notifications/message","params":{}}\r\n\n',
    ]);
    expect(messages).toHaveLength(2);
  });

  test.each([
    'Server listening on port 3000',
    '{',
    '[]',
    'null',
    '{"jsonrpc":"2.0"}',
    '{"jsonrpc":"1.0","id":1,"result":{}}',
    // Rules would read one of the two, and a client maybe the other.
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"data":1},"params":{"data":2}}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{},"Params":{}}',
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progressToken":2,"progress":1}}',
    '\u001b[31mred\u001b[0m',
  ])(
    'the stdio line %j, which is not a message, is dropped with a warning without other effects',
    async (garbage) => {
      await using own = await gateway(mcpConfig([chaos('a')]));
      const { messages } = await emit([`${garbage}\n`], await openSession(`${own.url}/mcp`));
      expect(messages.map(({ result }) => result.content[0].text)).toEqual(['emitted']);
      const warnings = own.log.filter((line) => line.includes('not a JSON-RPC message'));
      expect(warnings).toHaveLength(1);
      expect(warnings[0]).toContain('target="a"');
      expect(warnings[0]).not.toContain('\u001b');
    },
  );

  test('stdio lines that are not UTF-8 are dropped with a warning', async () => {
    await using own = await gateway(mcpConfig([chaos('a')]));
    const pieces = [Buffer.from([0xff, 0xfe, 0x0a]), Buffer.from([0xe2, 0x82, 0x0a])];
    const { messages } = await emit(pieces, await openSession(`${own.url}/mcp`));
    expect(messages).toHaveLength(1);
    expect(own.log.some((line) => /\twarn\t.*target="a" problem="the line is not UTF-8"/.test(line))).toBe(
      true,
    );
  });

  test('invalid stdio lines are logged once per target and minute over all sessions, with their number', async () => {
    await using own = await gateway(mcpConfig([chaos('a'), chaos('b')]), {
      limits: { invalidMessageLogInterval: 2_000 },
    });
    const url = `${own.url}/mcp`;
    const warnings = (text: string): string[] => own.log.filter((line) => line.includes(text));
    const noise = Array.from({ length: 20 }, () => 'Listening on port 3000\n');
    for (const session of [await openSession(url), await openSession(url)])
      for (const name of ['a_emit', 'b_emit'])
        await session.request('tools/call', { name, arguments: { pieces: [base64(noise.join(''))] } });
    const first = warnings('sent something that is not a JSON-RPC message');
    expect(first.map((line) => /target="(.)"/.exec(line)?.[1])).toEqual(['a', 'b']);
    const counted = (name: string): number =>
      warnings('sent more messages that are not JSON-RPC')
        .map((line) => Number(new RegExp(`target="${name}" count=(\\d+)\n`).exec(line)?.[1] ?? 0))
        .reduce((sum, count) => sum + count, 0);
    await until(() => counted('a') === 39 && counted('b') === 39);
    expect(warnings('sent more').length).toBeLessThanOrEqual(4);
  });
});

describe('unexpected stdio responses', () => {
  const answer = (id: unknown): string => `{"jsonrpc":"2.0","id":${id},"result":{"content":[]}}\n`;

  test.each(['999999', '"a"', '0', '-1', '1e3'])(
    'unexpected stdio responses with the id %s are dropped',
    async (id) => {
      const { messages } = await emit([answer(id)]);
      expect(messages.map(({ result }) => result.content[0].text)).toEqual(['emitted']);
    },
  );

  test('a second stdio response to a call is dropped', async () => {
    const { result } = await session.request('tools/call', { name: 'received' });
    const last = JSON.parse(JSON.parse(result.content[0].text).at(-1)).id as number;
    const { messages } = await emit([answer(last), answer(last)]);
    expect(messages.map((each) => each.result.content[0].text)).toEqual(['emitted']);
  });

  test('stdio responses in another order reach their callers', async () => {
    const replies = await Promise.all(
      [60, 30, 0].map((ms) =>
        session.send({
          id: ms,
          method: 'tools/call',
          params: { name: 'later', arguments: { ms, message: ms } },
        }),
      ),
    );
    expect(replies.map(({ messages }) => [messages[0].id, messages[0].result.content[0].text])).toEqual([
      [60, '60'],
      [30, '30'],
      [0, '0'],
    ]);
  });
});

describe('stdio message sizes', () => {
  test('a stdio result of seven megabytes passes', async () => {
    const { result } = await session.request('tools/call', { name: 'big', arguments: { bytes: 7_000_000 } });
    expect(result.content[0].text).toHaveLength(7_000_000);
  });

  test('a hundred thousand stdio messages at once pass, and the next call is answered', async () => {
    const flood = { method: 'notifications/tools/list_changed', times: 100_000 };
    const { messages } = await session.request('tools/call', { name: 'notify', arguments: flood });
    expect(messages.map(({ result }) => result.content[0].text)).toEqual(['notified']);
    expect((await session.request('ping')).result).toEqual({});
  });

  test('a stdio line over 8 MiB stops the child process and fails the call, and the next call starts another', async () => {
    const own = await openSession(session.url);
    const { error } = await own.request('tools/call', { name: 'big', arguments: { bytes: 9_000_000 } });
    expect(error).toEqual({
      code: -32603,
      message: 'target "a" is not available: the server wrote a message over 8388608 bytes',
    });
    expect(logged('target wrote a line over 8388608 bytes and was stopped\ttarget="a"')).toBe(true);
    await until(async () => (await own.request('ping')).result !== undefined);
  });

  test('a stdio result with more members than a request may have does not block its call', async () => {
    const own = await openSession(session.url);
    const { result } = await own.request('tools/call', { name: 'keys', arguments: { count: 120_000 } });
    expect(Object.keys(result.structuredContent)).toHaveLength(120_000);
  });
});
