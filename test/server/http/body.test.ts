import { brotliCompressSync, constants, deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AT_ONCE } from '../../kit/at-once.ts';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { type McpSession, openSession, post } from '../../kit/mcp.ts';
import { rawRequest, sendRaw } from '../../kit/raw-http.ts';

const LIMIT = 2 * 1024 * 1024;

let gate: TestGateway;
let session: McpSession;
beforeAll(async () => {
  gate = await gateway(mcpConfig([chaos('a', '--tools=received')]));
  session = await openSession(`${gate.url}/mcp`);
});
afterAll(() => gate.close());

const echo = (message: string) => ({
  jsonrpc: '2.0',
  id: 7,
  method: 'tools/call',
  params: { name: 'echo', arguments: { message } },
});

/** A call whose JSON text has exactly this number of bytes. */
function callOf(bytes: number): string {
  const empty = JSON.stringify(echo('')).length;
  return JSON.stringify(echo('x'.repeat(bytes - empty)));
}

/** Number of lines that the child has read so far. */
async function seenByChild(): Promise<number> {
  const { result } = await session.request('tools/call', { name: 'received', arguments: {} });
  return JSON.parse(result.content[0].text).length;
}

const MCP_LINES = ['Content-Type: application/json', 'Accept: text/event-stream'];

describe('request body size', () => {
  test('a request body of exactly the limit passes', async () => {
    const { status, result } = await post(session.url, callOf(LIMIT), { 'mcp-session-id': session.id });
    expect(status).toBe(200);
    expect(result.content[0].text).toMatch(/^x+$/);
  });

  test('a request body one byte over the limit is rejected with 413 and reaches no target', async () => {
    const before = await seenByChild();
    const { status, text } = await post(session.url, callOf(LIMIT + 1), { 'mcp-session-id': session.id });
    expect(status).toBe(413);
    expect(text).toBe(`request body is larger than ${LIMIT} bytes`);
    // The second query is itself a line.
    expect(await seenByChild()).toBe(before + 1);
  });

  test('a content-length over the limit is rejected before the body is read', async () => {
    const lines = [...MCP_LINES, `Content-Length: ${LIMIT + 1}`];
    const { statuses, closed } = await sendRaw(gate.port, rawRequest('POST /mcp HTTP/1.1', lines));
    expect({ statuses, closed }).toEqual({ statuses: [413], closed: true });
  });

  test('a chunked request body is rejected as soon as it exceeds the limit', async () => {
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
    const endless = rawRequest(
      'POST /mcp HTTP/1.1',
      [...MCP_LINES, 'Transfer-Encoding: chunked'],
      chunk.repeat(40),
    );
    const { statuses, closed } = await sendRaw(gate.port, endless);
    expect({ statuses, closed }).toEqual({ statuses: [413], closed: true });
  });

  test('a request body that ends early is logged as 499 and reaches no target', async () => {
    const before = await seenByChild();
    const count = gate.accessLog.length + 1;
    const lines = [...MCP_LINES, 'Content-Length: 1000'];
    await sendRaw(gate.port, rawRequest('POST /mcp HTTP/1.1', lines, '{"jsonrpc"'), { leave: true });
    expect((await gate.accessLine(count))['http.status']).toBe('499');
    expect(await seenByChild()).toBe(before + 1);
  });
});

describe('Expect: 100-continue', () => {
  const expecting = (length: number) =>
    rawRequest('POST /mcp HTTP/1.1', [...MCP_LINES, 'Expect: 100-continue', `Content-Length: ${length}`]);

  test('Expect: 100-continue is rejected without 100 for a body over the limit', async () => {
    const { statuses, closed } = await sendRaw(gate.port, expecting(3 * 1024 * 1024));
    expect({ statuses, closed }).toEqual({ statuses: [413], closed: true });
  });

  test('Expect: 100-continue is answered with 100 for an acceptable body', async () => {
    const { statuses } = await sendRaw(gate.port, expecting(10), { responses: 1 });
    expect(statuses).toEqual([100]);
  });

  test('Expect with another value is rejected with 417', async () => {
    const bytes = rawRequest('POST /mcp HTTP/1.1', [...MCP_LINES, 'Expect: a-miracle', 'Content-Length: 0']);
    expect((await sendRaw(gate.port, bytes, { responses: 1 })).statuses).toEqual([417]);
  });
});

describe('content-encoding', () => {
  const send = (body: Uint8Array, encoding: string) =>
    post(session.url, body, { 'mcp-session-id': session.id, 'content-encoding': encoding });

  test.each([
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['GZIP', gzipSync],
    ['identity', (text: string) => Buffer.from(text)],
  ] as const)('Content-Encoding %s is decoded', async (encoding, encode) => {
    const { result } = await send(encode(JSON.stringify(echo('packed'))), encoding);
    expect(result.content[0].text).toBe('packed');
  });

  const refused = async (encoding: string): Promise<void> => {
    const { status, text } = await send(gzipSync('{}'), encoding);
    expect(status).toBe(415);
    expect(text).toBe('content-encoding is not supported: send identity, gzip, deflate or br');
  };
  test.each(['foo', 'gzip, gzip', Array(50).fill('gzip').join(', '), 'zstd'])(
    'Content-Encoding %s is rejected with 415',
    refused,
  );
  test('Content-Encoding constructor is rejected with 415', () => refused('constructor'));

  test.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    // Brotli's default quality takes six seconds here without a benefit.
    ['br', (bytes) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } })],
  ] as [string, (bytes: Buffer) => Buffer][])(
    'Content-Encoding %s bomb is stopped at the body limit',
    async (encoding, encode) => {
      const bomb = encode(Buffer.alloc(64 * 1024 * 1024));
      const started = performance.now();
      expect((await send(bomb, encoding)).status).toBe(413);
      expect(performance.now() - started).toBeLessThan(AT_ONCE);
    },
  );

  test('Content-Encoding gzip with invalid data is rejected with 400', async () => {
    const { status, text } = await send(Buffer.from('not gzip'), 'gzip');
    expect(status).toBe(400);
    expect(text).toBe('the request body is not valid gzip');
  });
});
