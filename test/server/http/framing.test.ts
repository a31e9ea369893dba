import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { rawRequest, sendRaw } from '../../kit/raw-http.ts';
import { until } from '../../kit/until.ts';

let gate: TestGateway;
beforeAll(async () => {
  gate = await gateway(mcpConfig([chaos('a')]));
});
afterAll(() => gate.close());

// A well-formed request to the MCP route that needs no session and is answered with 405.
const HARMLESS = rawRequest('PUT /mcp HTTP/1.1', ['Content-Length: 0']);
const post = (lines: string[], body = '') => rawRequest('POST /mcp HTTP/1.1', lines, body);

/** Sends bytes that must be rejected, and checks that the connection is closed and others are still served. */
async function refusal(bytes: string): Promise<number[]> {
  const { statuses, closed } = await sendRaw(gate.port, bytes);
  expect(closed).toBe(true);
  const after = await sendRaw(gate.port, HARMLESS, { responses: 1 });
  expect(after.statuses).toEqual([405]);
  return [...statuses];
}

describe('ambiguous message framing', () => {
  const cases: Record<string, string> = {
    'a length and chunks': post(['Content-Length: 4', 'Transfer-Encoding: chunked'], '0\r\n\r\n'),
    'two lengths': post(['Content-Length: 4', 'Content-Length: 5'], 'abcde'),
    'the same length twice': post(['Content-Length: 4', 'Content-Length: 4'], 'abcd'),
    'a list of lengths': post(['Content-Length: 4, 4'], 'abcd'),
    'a signed length': post(['Content-Length: +4'], 'abcd'),
    'a negative length': post(['Content-Length: -1']),
    'a hexadecimal length': post(['Content-Length: 0x4'], 'abcd'),
    'an empty length': post(['Content-Length: '], 'abcd'),
    'a length of twenty digits': post(['Content-Length: 99999999999999999999'], 'abcd'),
    'an unknown encoding': post(['Transfer-Encoding: xchunked'], '0\r\n\r\n'),
    'chunked before another encoding': post(['Transfer-Encoding: chunked, identity'], '0\r\n\r\n'),
    'chunked twice': post(['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], '0\r\n\r\n'),
    'a space before the colon': post(['Transfer-Encoding : chunked'], '0\r\n\r\n'),
    'an encoding list that begins with a comma': post(['Transfer-Encoding: ,chunked'], '0\r\n\r\n'),
    'an encoding with a control character': post(['Transfer-Encoding: \x0bchunked'], '0\r\n\r\n'),
  };
  test.each(Object.entries(cases))(
    'ambiguous framing is rejected and closes the connection: %s',
    async (_name, bytes) => {
      const [status, ...more] = await refusal(bytes);
      expect([400, 501]).toContain(status);
      expect(more).toEqual([]);
    },
  );

  test('a transfer coding other than chunked is rejected with 501', async () => {
    const [status] = await refusal(post(['Transfer-Encoding: gzip, chunked'], '0\r\n\r\n'));
    expect(status).toBe(501);
  });

  test('Transfer-Encoding in an HTTP/1.0 request is rejected with 400', async () => {
    const old = rawRequest('POST /mcp HTTP/1.0', ['Transfer-Encoding: chunked'], '0\r\n\r\n');
    expect(await refusal(old)).toEqual([400]);
  });
});

describe('malformed chunks', () => {
  const JSON_POST = [
    'Content-Type: application/json',
    'Accept: text/event-stream',
    'Transfer-Encoding: chunked',
  ];
  const cases: Record<string, string> = {
    'a size with 0x': '0x1\r\na\r\n0\r\n\r\n',
    'a size with an underscore': '0_2\r\nab\r\n0\r\n\r\n',
    'a bare line feed': '1\na\n0\n\n',
    'carriage returns in an extension': '1\r\r;x\r\na\r\n0\r\n\r\n',
    'a size of seventeen digits': 'FFFFFFFFFFFFFFFFF\r\na\r\n0\r\n\r\n',
    'data longer than its size': '1\r\nabc\r\n0\r\n\r\n',
    'an extension of 20 kB': `1;${'x'.repeat(20_000)}\r\na\r\n0\r\n\r\n`,
  };
  test.each(Object.entries(cases))(
    'malformed chunk is rejected and closes the connection: %s',
    async (_name, body) => {
      const [status] = await refusal(post(JSON_POST, body));
      expect([400, 413]).toContain(status);
    },
  );
});

describe('header fields', () => {
  test('two Host headers are rejected', async () => {
    const [status] = await refusal(rawRequest('GET /mcp HTTP/1.1', ['Host: evil.example']));
    expect(status).toBe(400);
  });

  test.each([
    'a/b',
    'a?b',
    'u@localhost',
    'a:b',
    'a:123456',
    'a:1:2',
    '::1',
    '[::1',
    'a b',
    'a\\b',
    '\u00fc',
    '',
    'a..b',
  ])('an invalid Host header is rejected: %s', async (host) => {
    const bytes = `GET /mcp HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
    const { text, statuses, closed } = await sendRaw(gate.port, Buffer.from(bytes, 'latin1'));
    expect({ statuses, closed }).toEqual({ statuses: [400], closed: true });
    expect(text).toContain('the Host header is not a host and a port');
  });

  test.each(['[::1]:80', '[fe80::1%25eth0]', 'a_b.example:1', 'EXAMPLE.org.', 'a:'])(
    'a valid Host header is accepted: %s',
    async (host) => {
      const bytes = `GET /nowhere HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
      expect((await sendRaw(gate.port, bytes, { responses: 1 })).statuses).not.toEqual([400]);
    },
  );

  test.each(['authorization', 'content-type', 'mcp-session-id', 'mcp-protocol-version'])(
    'two %s headers are rejected by name',
    async (field) => {
      const bytes = post([`${field}: a`, `${field.toUpperCase()}: b`, 'Content-Length: 0']);
      const { text, statuses, closed } = await sendRaw(gate.port, bytes);
      expect({ statuses, closed }).toEqual({ statuses: [400], closed: true });
      expect(text).toContain(`two ${field} headers`);
    },
  );

  const lines = (count: number) => Array.from({ length: count }, (_, index) => `X-${index}: 1`);

  test('100 header lines are accepted and 101 are rejected with 431', async () => {
    // With Host and Content-Length: 100 lines.
    const full = await sendRaw(
      gate.port,
      rawRequest('PUT /mcp HTTP/1.1', ['Content-Length: 0', ...lines(98)]),
      {
        responses: 1,
      },
    );
    expect(full.statuses).toEqual([405]);
    expect(await refusal(rawRequest('PUT /mcp HTTP/1.1', ['Content-Length: 0', ...lines(99)]))).toEqual([
      431,
    ]);
    expect(await refusal(rawRequest('GET /mcp HTTP/1.1', [...lines(2_000), 'Authorization: x']))).toEqual([
      431,
    ]);
  });

  test('20 kB of header fields are rejected with 431', async () => {
    expect(await refusal(rawRequest('GET /mcp HTTP/1.1', [`X: ${'x'.repeat(20_000)}`]))).toEqual([431]);
  });

  test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])(
    'a header named %s is ordinary data',
    async (name) => {
      const bytes = rawRequest('PUT /mcp HTTP/1.1', [`${name}: {"polluted":1}`, 'Content-Length: 0']);
      const { statuses } = await sendRaw(gate.port, bytes, { responses: 1 });
      expect(statuses).toEqual([405]);
      expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    },
  );

  test.each([
    ['folded over two lines', 'X-A: 1\r\n  2'],
    ['ended by a bare line feed', 'X-A: 1\nX-B: 2'],
    ['with a NUL', 'X-A: 1\x002'],
    ['without a name', ': 1'],
    ['without a colon', 'X-A'],
  ])('a header field %s is rejected', async (_how, line) => {
    expect(await refusal(rawRequest('GET /mcp HTTP/1.1', [line]))).toEqual([400]);
  });

  test('trailers are not merged into the header fields', async () => {
    const body = '0\r\nMcp-Session-Id: from-a-trailer\r\nAuthorization: x\r\n\r\n';
    const lines = ['Accept: text/event-stream', 'Trailer: Mcp-Session-Id', 'Transfer-Encoding: chunked'];
    const { text, statuses } = await sendRaw(gate.port, rawRequest('DELETE /mcp HTTP/1.1', lines, body), {
      responses: 1,
    });
    expect(statuses).toEqual([400]);
    expect(text).toContain('session header is required');
  });
});

describe('request lines', () => {
  test('a request line with HTTP/2.0 is rejected with 505', async () => {
    expect(await refusal(rawRequest('GET /mcp HTTP/2.0'))).toEqual([505]);
  });

  test.each([
    'GET /mcp HTTP/1.2',
    'get /mcp HTTP/1.1',
    'FETCH /mcp HTTP/1.1',
    'GET mcp HTTP/1.1',
    'GET /m cp HTTP/1.1',
  ])('the request line %s is rejected', async (line) => {
    const [status] = await refusal(rawRequest(line));
    expect([400, 505]).toContain(status);
  });

  test('a request without Host is rejected', async () => {
    expect(await refusal('GET /mcp HTTP/1.1\r\n\r\n')).toEqual([400]);
  });

  test('bytes that are not HTTP close the connection without an access log line', async () => {
    const lines = gate.accessLog.length;
    const hello = Uint8Array.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03]);
    for (const bytes of [hello, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', '\x00'.repeat(100_000)]) {
      expect((await sendRaw(gate.port, bytes)).closed).toBe(true);
    }
    expect(gate.accessLog.slice(lines)).toEqual([]);
  });

  test.each([
    ['is malformed', 'GET /mcp BROKEN\r\n\r\n', 400],
    ['wants a tunnel', rawRequest('CONNECT localhost:443 HTTP/1.1'), 405],
    ['has too long a header', rawRequest('GET /mcp HTTP/1.1', [`X: ${'x'.repeat(20_000)}`]), 431],
  ])('a rejected half-open connection is closed when its request %s', async (_, bytes, status) => {
    await using own = await gateway(mcpConfig([chaos('a')]));
    const socket = connect({ port: own.port, host: '127.0.0.1', allowHalfOpen: true });
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk;
    });
    // The gateway cuts the connection in the end, possibly with a reset.
    socket.on('error', () => undefined);
    socket.write(bytes);
    await once(socket, 'end');
    expect(text).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    await until(async () => (await own.running.connections())[0]?.count === 0, LIMITS.linger + 2_000);
    socket.destroy();
  });

  test('pipelined requests are answered in order up to the malformed one', async () => {
    const { statuses, closed } = await sendRaw(
      gate.port,
      `${HARMLESS.repeat(49)}GET /mcp BROKEN\r\n\r\n${HARMLESS.repeat(50)}`,
    );
    expect(statuses).toEqual([...Array(49).fill(405), 400]);
    expect(closed).toBe(true);
  });
});
