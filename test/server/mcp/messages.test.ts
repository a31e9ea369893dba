import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AT_ONCE } from '../../kit/at-once.ts';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { type Json, type McpReply, type McpSession, openSession, post } from '../../kit/mcp.ts';

let gate: TestGateway;
let session: McpSession;
beforeAll(async () => {
  gate = await gateway(mcpConfig([chaos('a', '--tools=echo')]));
  session = await openSession(`${gate.url}/mcp`);
});
afterAll(() => gate.close());

const send = (body: string | Uint8Array): Promise<McpReply> =>
  post(session.url, body, { 'mcp-session-id': session.id });

/** Lines that the child has read. */
async function received(): Promise<string[]> {
  const { result } = await session.request('tools/call', { name: 'received' });
  return JSON.parse(result.content[0].text);
}

/**
 * Sends a body that must be refused; nothing of it may reach the target, and the session must go on. `id`: of the error, which
 * clients relate to their request by it.
 */
async function refusal(body: string | Uint8Array, id: number | null = null): Promise<Json> {
  const before = await received();
  const { status, headers, messages } = await send(body);
  expect(status).toBe(400);
  expect(headers.get('content-type')).toBe('application/json');
  expect(messages).toHaveLength(1);
  expect(messages[0]).toMatchObject({ jsonrpc: '2.0', id });
  const after = await received();
  expect(after.slice(before.length).map((line) => JSON.parse(line).params.name)).toEqual(['received']);
  return messages[0].error;
}

describe('invalid messages', () => {
  test.each([
    '',
    ' ',
    '{',
    '{"jsonrpc":"2.0"',
    'nonsense',
    "{'a':1}",
    '{"a":1}}',
    '{"a":1,}',
    'NaN',
    '\ufeff{}',
  ])('the body %j is a parse error', async (body) => {
    expect(await refusal(body)).toEqual({ code: -32700, message: 'the body is not valid JSON' });
  });

  test.each([
    'null',
    '7',
    '"x"',
    'true',
    '{}',
    '{"jsonrpc":"2.0","id":null,"method":"ping"}',
    '{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
    '{"jsonrpc":"2.0","id":1e400,"method":"ping"}',
    '{"jsonrpc":"2.0","id":{},"method":"ping"}',
    '{"jsonrpc":"2.0","id":true,"method":"ping"}',
    '{"jsonrpc":"1.0","id":1,"result":{}}',
  ])('the body %s is an invalid request', async (body) => {
    expect(await refusal(body)).toMatchObject({ code: -32600 });
  });

  test.each([
    '{"id":1,"method":"ping"}',
    '{"jsonrpc":"1.0","id":1,"method":"ping"}',
    '{"jsonrpc":2.0,"id":1,"method":"ping"}',
    '{"jsonrpc":"2.0","id":1}',
    '{"jsonrpc":"2.0","id":1,"method":7}',
    '{"jsonrpc":"2.0","id":1,"method":null}',
    '{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}',
    '{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}',
    '{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}',
    '{"jsonrpc":"2.0","id":1,"method":"ping","params":null}',
    '{"jsonrpc":"2.0","id":1,"method":"ping","params":7}',
  ])('the body %s is an invalid request, and the error has its id', async (body) => {
    expect(await refusal(body, 1)).toMatchObject({ code: -32600 });
  });

  test.each(['[]', '[{"jsonrpc":"2.0","id":1,"method":"ping"}]'])(
    'the batch %s is rejected with an error that names batches',
    async (body) => {
      const error = await refusal(body);
      expect(error).toEqual({
        code: -32600,
        message: 'batches are not supported: send one message per request',
      });
    },
  );
});

describe('bytes that are not UTF-8', () => {
  const around = (bytes: number[]): Uint8Array =>
    Buffer.concat([
      Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"'),
      Buffer.from(bytes),
      Buffer.from('"}}'),
    ]);

  test.each([
    ['FF FE', [0xff, 0xfe]],
    ['an overlong slash', [0xc0, 0xaf]],
    ['half a surrogate pair', [0xed, 0xa0, 0x80]],
    ['a cut sequence', [0xe2, 0x82]],
    ['UTF-16', [0x00, 0xd8]],
  ])('a body that is not UTF-8 (%s) is a parse error and is never repaired', async (_what, bytes) => {
    expect(await refusal(around(bytes))).toEqual({ code: -32700, message: 'the body is not valid UTF-8' });
  });
});

describe('ambiguous keys', () => {
  test.each([
    ['"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"', 'method'],
    ['"jsonrpc":"2.0","id":1,"id":2,"method":"ping"', 'id'],
    ['"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}', 'name'],
    ['"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","n\\u0061me":"b"}', 'name'],
    ['"jsonrpc":"2.0","id":1,"method":"ping","params":{},"params":{}', 'params'],
    [
      '"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"path":"/etc","path":"/tmp"}}',
      'path',
    ],
    [
      '"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"o":[{"path":1,"p\\u0061th":2}]}}',
      'path',
    ],
  ])('a message with a duplicate key is rejected: {%s}', async (members, key) => {
    expect(await refusal(`{${members}}`, key === 'id' ? null : 1)).toEqual({
      code: -32600,
      message: `duplicate key ${JSON.stringify(key)}`,
    });
  });

  test.each([
    '"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/list"',
    '"jsonrpc":"2.0","ID":1,"method":"ping"',
    '"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","Name":"b"}',
    '"jsonrpc":"2.0","id":1,"method":"tools/call","paramſ":{"name":"a"}',
    '"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a","URI":"b"}',
  ])(
    'a message with a key that differs from a protocol key only in case is rejected: {%s}',
    async (members) => {
      const error = await refusal(`{${members}}`, 1);
      expect(error.code).toBe(-32600);
      expect(error.message).toContain('in case only');
    },
  );
});

describe('structure limits', () => {
  const call = (params: string): string =>
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`;
  const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;

  test('a message with a depth of 128 passes and one with 129 is rejected', async () => {
    // The message and its params are two levels, arguments a third.
    const { status } = await send(call(`{"name":"echo","arguments":{"message":1,"x":${nested(125)}}}`));
    expect(status).toBe(200);
    const error = await refusal(call(`{"name":"echo","arguments":{"message":1,"x":${nested(126)}}}`), 1);
    expect(error.message).toBe('the message nests deeper than 128 or has over 50000 keys');
  });

  test.each([
    ['a million open brackets', '['.repeat(1_000_000)],
    ['a million nested arrays', nested(1_000_000)],
    ['150 000 keys', call(`{${Array.from({ length: 150_000 }, (_, key) => `"k${key}":0`).join(',')}}`)],
    [
      '150 000 numeric keys',
      call(`{${Array.from({ length: 150_000 }, (_, key) => `"${key}":0`).join(',')}}`),
    ],
  ])('a message with %s is rejected without being parsed', async (_what, body) => {
    const started = performance.now();
    const { status, error } = await send(body);
    expect(status).toBe(400);
    expect(error.code).toBe(-32600);
    expect(performance.now() - started).toBeLessThan(AT_ONCE);
  });

  test('brackets and colons inside strings do not count towards the structure limits', async () => {
    const message = '[{:'.repeat(200_000);
    const { result } = await send(call(JSON.stringify({ name: 'echo', arguments: { message } })));
    expect(result.content[0].text).toBe(message);
  });
});

describe('message text', () => {
  test.each([
    '{"name":"echo","arguments":{"big":12345678901234567890,"one":1.0,"small":1e-7,"huge":1e400}}',
    '{"arguments":{"z":1,"a":2,"__proto__":{"polluted":1}},"name":"echo","unknown":[{}, [ ]]}',
    '{ "name" : "echo" ,  "arguments" : { "text" : "\\u00e9\\ud83d\\ude00\\/ \\"quoted\\" \u00e9😀" } }',
    '{"name":"echo","arguments":{"params":{"name":"x"},"id":5,"method":"ping"}}',
  ])('tools/call params are forwarded with their text unchanged: %s', async (params) => {
    const { status } = await send(`{"method":"tools/call","params":${params},"jsonrpc":"2.0","id":"i"}`);
    expect(status).toBe(200);
    // The last line before the call that asks for the received lines.
    const line = (await received()).at(-2) as string;
    expect(line).toMatch(/^\{"method":"tools\/call","params":.*,"jsonrpc":"2\.0","id":\d+\}$/);
    expect(line).toContain(`"params":${params},`);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  test('what is beside the members of JSON-RPC is read by no policy and does not reach the server', async () => {
    const members =
      '"Arguments":{"a":1},"_meta":{"a":1},"result":{"a":1},"error":{},"extra":null,"__proto__":{"a":1}';
    const { status } = await send(
      `{${members},"jsonrpc":"2.0", "id":"i","method":"tools/call","params":{ "name":"echo" }}`,
    );
    expect(status).toBe(200);
    expect((await received()).at(-2)).toMatch(
      /^\{"jsonrpc":"2\.0","id":\d+,"method":"tools\/call","params":\{ "name":"echo" \}\}$/,
    );
  });

  test('line breaks between tokens become spaces, because stdio messages are lines', async () => {
    const { status } = await send('{\n  "jsonrpc": "2.0",\r\n  "id": 1,\n  "method": "ping"\n}\n');
    expect(status).toBe(200);
    expect((await received()).at(-2)).toMatch(
      /^\{ {3}"jsonrpc": "2\.0", +"id": \d+, {3}"method": "ping" \} $/,
    );
  });

  test('results are forwarded to the client with their text unchanged', async () => {
    const { text } = await session.request('tools/list');
    expect(text).toContain('"inputSchema":{"type":"object"}');
    const pieces = [
      '{"jsonrpc":"2.0","id":"?","result":{"big":12345678901234567890,"one":1.0,"\\u0061":[null]}}\n',
    ];
    // The child must answer with the id of this call, which is one more than the last id that it received.
    const last = JSON.parse((await received()).at(-1) as string).id as number;
    const line = (pieces[0] as string).replace('"?"', String(last + 1));
    const answer = await session.request('tools/call', {
      name: 'emit',
      arguments: { pieces: [Buffer.from(line).toString('base64')], silent: true },
    });
    expect(answer.text).toContain('"result":{"big":12345678901234567890,"one":1.0,"\\u0061":[null]}');
  });
});
