import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { rawRequest, sendRaw } from '../../kit/raw-http.ts';
import { proxyGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { repeats } from '../../kit/thorough.ts';
import { httpUpstream, rawUpstream } from '../../kit/upstream.ts';

/** `FUZZ_RUNS=100000 FUZZ_SEED=7 npx vitest run test/server/http/fuzz.test.ts` runs more mutations. */
const RUNS = Number(process.env['FUZZ_RUNS'] ?? repeats(400, 10_000));
const SEED = Number(process.env['FUZZ_SEED'] ?? 20_261_121);
const PARALLEL = 48;
/** An incomplete request is never answered: after this time without data, in ms, the test ends its side of the connection. */
const PATIENCE = 250;

const SEEDS = [
  rawRequest('GET /a?b=c HTTP/1.1', ['Accept: */*', 'X-One: 1', 'X-One: 2']),
  rawRequest('POST /a HTTP/1.1', ['Content-Length: 5', 'Content-Type: text/plain'], 'hello'),
  rawRequest('POST /a HTTP/1.1', ['Transfer-Encoding: chunked'], '5\r\nhello\r\n0\r\n\r\n'),
  rawRequest(
    'POST /a HTTP/1.1',
    ['Transfer-Encoding: chunked', 'Trailer: X-T'],
    '1\r\na\r\n0\r\nX-T: 1\r\n\r\n',
  ),
  rawRequest('POST /a HTTP/1.1', ['Content-Encoding: gzip', 'Content-Length: 3'], '\x1f\x8b\x08'),
  rawRequest('POST /a HTTP/1.1', ['Expect: 100-continue', 'Content-Length: 2'], 'ok'),
  rawRequest('OPTIONS * HTTP/1.1', ['Origin: http://x', 'Access-Control-Request-Method: PUT']),
  rawRequest('GET http://other/x HTTP/1.1', ['Connection: keep-alive, X-Hop', 'X-Hop: 1', 'Upgrade: h2c']),
  rawRequest('GET /%2e%2e/..;/%00/%ff HTTP/1.1', ['Cookie: a=b; c', 'Authorization: Bearer x']),
  `${rawRequest('GET /1 HTTP/1.1')}${rawRequest('GET /2 HTTP/1.1')}${rawRequest('DELETE /3 HTTP/1.1')}`,
];
const PIECES = [
  '\r\n',
  '\n',
  '\r',
  '\0',
  ' ',
  '\t',
  ':',
  ',',
  '%',
  '/',
  '..',
  '//',
  '\\',
  'chunked',
  '0',
  '-1',
  '99999999999999999999',
  'HTTP/1.0',
  'HTTP/2.0',
  'Host: a',
  '\x80',
  '\xff',
  'a'.repeat(9_000),
];

/** A seeded generator of numbers below `limit` (mulberry32). */
function random(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * limit);
  };
}

function mutate(text: string, below: (limit: number) => number): string {
  let result = text;
  for (let count = 1 + below(4); count > 0; count -= 1) {
    const at = below(result.length + 1);
    const end = at + below(12);
    const piece = PIECES[below(PIECES.length)] as string;
    const kinds = [
      () => result.slice(0, at) + piece + result.slice(at),
      () => result.slice(0, at) + result.slice(end),
      () => result.slice(0, at) + String.fromCharCode(below(256)) + result.slice(at + 1),
      () => result.slice(0, end) + result.slice(at),
      () => result.slice(0, at) + (SEEDS[below(SEEDS.length)] as string).slice(at),
    ];
    result = (kinds[below(kinds.length)] as () => string)();
  }
  return result;
}

/** All statuses received before the server closed the connection. */
function statusesOf(port: number, bytes: string): Promise<number[]> {
  return new Promise((resolve) => {
    let text = '';
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.write(bytes, 'latin1'));
    socket.setTimeout(PATIENCE, () => socket.end());
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
    });
    socket.on('error', () => undefined);
    socket.on('close', () =>
      resolve([...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))),
    );
  });
}

test(`${RUNS} mutated requests get only expected statuses and the gateway keeps serving`, async () => {
  await using upstream = await httpUpstream();
  await using gate = await proxyGateway(upstream.address);
  const below = random(SEED);
  const inputs = Array.from({ length: RUNS }, () => mutate(SEEDS[below(SEEDS.length)] as string, below));
  const seen = new Map<number, string>();
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let input = inputs[next++]; input !== undefined; input = inputs[next++]) {
      for (const status of await statusesOf(gate.port, input)) seen.set(status, input);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, worker));
  const odd = [...seen].filter(
    ([status]) => ![100, 501, 505].includes(status) && (status < 200 || status > 499),
  );
  expect(odd, `seed ${SEED}`).toEqual([]);
  // The inputs reach past the parser: some are served, some are rejected by it.
  expect([...seen.keys()]).toEqual(expect.arrayContaining([200, 400]));
  for (const { rawHeaders, target } of upstream.received) {
    const hosts = rawHeaders.filter(
      (_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === 'host',
    );
    expect(hosts).toEqual([expect.stringMatching(/^[!-~]+$/)]);
    expect(target).toMatch(/^\/[!-~]*$/);
  }
  expect(gate.log.filter((line) => line.includes('internal error'))).toEqual([]);
  expect((await send(gate.url)).status).toBe(200);
}, 60_000);

const HANDSHAKE = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
];
/** Requests that take over the connection, end it, or are none, beside ordinary ones. */
const PIPELINED = [
  rawRequest('GET /a HTTP/1.1'),
  rawRequest('GET /b HTTP/1.1', ['Connection: close']),
  rawRequest('GET /c HTTP/1.0'),
  rawRequest('POST /d HTTP/1.1', ['Content-Length: 5'], 'hello'),
  rawRequest('POST /e HTTP/1.1', ['Expect: 100-continue', 'Content-Length: 2'], 'ok'),
  rawRequest('POST /f HTTP/1.1', ['Transfer-Encoding: chunked'], '5\r\nhello\r\n'),
  rawRequest('GET /g HTTP/1.1', HANDSHAKE),
  rawRequest('GET /h HTTP/1.1', [...HANDSHAKE, 'Content-Length: 3'], 'abc'),
  rawRequest('GET /i HTTP/1.1', ['Connection: Upgrade', 'Upgrade: h2c']),
  rawRequest('CONNECT 127.0.0.1:1 HTTP/1.1'),
  rawRequest('OPTIONS * HTTP/1.1'),
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'no request\r\n\r\n',
];
const SWITCHING = 'HTTP/1.1 101 S\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nfirst';
const ANSWERS = [
  'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok',
  'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nok',
  SWITCHING,
  'HTTP/1.1 426 U\r\nconnection: close\r\ncontent-length: 0\r\n\r\n',
  '',
];

test(`${RUNS} pipelines, whose connections end at any time and in any way, stop nothing`, async () => {
  const below = random(SEED);
  await using upstream = await rawUpstream(async (socket, head) => {
    await delay(below(20));
    socket.write(/^upgrade:/im.test(head) ? SWITCHING : (ANSWERS[below(ANSWERS.length)] as string));
    if (below(4) === 0) socket.destroy();
  });
  await using gate = await proxyGateway(upstream.address, { timeout: { backendRequestTimeout: '100ms' } });
  const visit = async (): Promise<void> => {
    const requests = Array.from({ length: 1 + below(4) }, () => PIPELINED[below(PIPELINED.length)]);
    const socket = connect({ port: gate.port, host: '127.0.0.1' });
    socket.on('error', () => undefined).resume();
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.write(requests.join(''));
    await delay(below(40));
    const kind = below(4);
    if (kind === 0) socket.resetAndDestroy();
    else if (kind === 1) socket.end();
    else if (kind === 2) socket.write(PIPELINED[below(PIPELINED.length)] as string);
    await Promise.race([closed, delay(below(60))]);
    socket.destroy();
  };
  let left = RUNS;
  const worker = async (): Promise<void> => {
    for (; left > 0; left -= 1) await visit();
  };
  await Promise.all(Array.from({ length: PARALLEL }, worker));
  expect(gate.log.filter((line) => line.includes('internal error'))).toEqual([]);
  expect((await sendRaw(gate.port, 'no request\r\n\r\n')).statuses).toEqual([400]);
  expect(upstream.heads.length).toBeGreaterThan(0);
  await gate.close();
  // No request goes on without its client.
  expect(gate.log.filter((line) => line.includes('aborted at the deadline'))).toEqual([]);
}, 60_000);
