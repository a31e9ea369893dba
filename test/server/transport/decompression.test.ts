import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { brotliCompressSync, constants, createGzip, deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { mcpConfig } from '../../kit/config.ts';
import { gateway } from '../../kit/gateway.ts';
import { startIdp } from '../../kit/idp.ts';
import { CHAT, chat, errorOf, llmGateway, llmProvider } from '../../kit/llm-provider.ts';
import { MCP_HEADERS, openSession } from '../../kit/mcp.ts';
import { mcpUpstream, type Script } from '../../kit/mcp-upstream.ts';
import { type ServeProcess, serve } from '../../kit/process.ts';
import { proxyGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { call, protectedGateway, signIn } from '../../kit/sign-in.ts';
import { type HttpUpstream, httpUpstream } from '../../kit/upstream.ts';

// A few kilobytes can decompress to hundreds of megabytes (headroomlabs-ai/headroom#3284, ffuf/ffuf#897).

const MIB = 1024 * 1024;
const SIZE = 128 * MIB;
/** Brotli's default quality takes a quarter of a minute for this size, without a benefit. */
const brotli = (bytes: Buffer): Buffer =>
  brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } });

/** A JSON text of 128 MiB, or as much white space before a value, compressed. */
const bombs = new Map<string, Buffer>();
function bomb(encoding: string): Buffer {
  let bytes = bombs.get(encoding);
  if (bytes === undefined) {
    const text = Buffer.alloc(SIZE, ' ');
    bytes = encoding === 'br' ? brotli(text) : encoding === 'deflate' ? deflateSync(text) : gzipSync(text);
    bombs.set(encoding, bytes);
  }
  return bytes;
}

/** Makes the peak of a process what it has now. */
const forgetPeak = (pid: number): void => writeFileSync(`/proc/${pid}/clear_refs`, '5');
const peakOf = (pid: number): number =>
  Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;

describe.skipIf(process.platform !== 'linux')('memory of a gateway that receives compression bombs', () => {
  let provider: HttpUpstream;
  let served: ServeProcess;
  beforeAll(async () => {
    provider = await llmProvider((_, response, { body }) => {
      const encoding = /"bomb (\w+)"/.exec(body)?.[1];
      response.writeHead(200, {
        'content-type': body.includes('"stream":true') ? 'text/event-stream' : 'application/json',
        ...(encoding !== undefined && { 'content-encoding': encoding }),
      });
      response.end(encoding === undefined ? '{"model":"m","choices":[]}' : bomb(encoding));
    });
    const models = [{ name: '*', provider: 'openAI', params: { baseUrl: `http://${provider.address}/v1` } }];
    served = await serve(JSON.stringify({ llm: { port: 0, models } }));
    for (let warm = 0; warm < 20; warm += 1) await ask('hello', warm % 2 === 0);
  });
  afterAll(async () => {
    await served[Symbol.asyncDispose]();
    await provider.close();
  });

  const ask = (content: string, stream: boolean): Promise<void> =>
    new Promise((resolve) => {
      const asked = request(`${served.url}/v1/chat/completions`, { method: 'POST' }, (response) => {
        response
          .on('error', () => undefined)
          .on('close', resolve)
          .resume();
      });
      asked.on('error', () => resolve());
      asked.end(JSON.stringify({ model: 'm', messages: [{ role: 'user', content }], stream }));
    });

  test.each(['gzip', 'deflate', 'br'])(
    'responses of a provider that decompress to 128 MiB (%s) are cut off, and memory grows by less than 64 MiB',
    async (encoding) => {
      forgetPeak(served.pid);
      const before = peakOf(served.pid);
      for (const stream of [false, true, false, true]) await ask(`bomb ${encoding}`, stream);
      expect((peakOf(served.pid) - before) / MIB).toBeLessThan(64);
      await ask('hello', false);
    },
    60_000,
  );

  test.each(['gzip', 'deflate', 'br'])(
    'request bodies that decompress to 128 MiB (%s) are 413, and memory grows by less than 64 MiB',
    async (encoding) => {
      const { length } = provider.received;
      const url = `${served.url}/v1/chat/completions`;
      forgetPeak(served.pid);
      const before = peakOf(served.pid);
      for (let round = 0; round < 4; round += 1) {
        const headers = { 'content-encoding': encoding };
        const reply = await send(url, { method: 'POST', body: bomb(encoding), headers });
        expect(reply.status).toBe(413);
        expect(reply.text).toContain('request_body_too_large');
      }
      expect((peakOf(served.pid) - before) / MIB).toBeLessThan(64);
      expect(provider.received).toHaveLength(length);
    },
    60_000,
  );
});

describe('bodies that decompress to far more than their size', () => {
  test('a compressed request that expands more than a hundredfold is 413 with the reason', async () => {
    await using gate = await gateway(mcpConfig([{ name: 'a', mcp: { host: 'http://127.0.0.1:9/mcp' } }]));
    const body = gzipSync(Buffer.alloc(LIMITS.requestBodyBytes + 1, ' '));
    const headers = { ...MCP_HEADERS, 'content-encoding': 'gzip' };
    const reply = await send(`${gate.url}/mcp`, { method: 'POST', body, headers });
    expect(reply.status).toBe(413);
    expect(reply.text).toContain('when it is decompressed');
    await using provider = await llmProvider();
    await using llm = await llmGateway(provider);
    const large = gzipSync(Buffer.alloc(30 * MIB, ' '));
    const refused = await send(`${llm.url}/v1/chat/completions`, {
      method: 'POST',
      body: large,
      headers: { 'content-encoding': 'gzip' },
    });
    expect(refused.status).toBe(413);
    expect(errorOf(refused)).toMatchObject({ code: 'request_body_too_large' });
    expect((await llm.accessLine(1))['error.detail']).toContain(
      'decompresses to more than 100 times its size',
    );
  });

  test('a compressed request that expands usually is read, also above the size from which the ratio counts', async () => {
    await using provider = await llmProvider();
    await using llm = await llmGateway(provider);
    const words = Array.from({ length: 400_000 }, (_, index) => `w${(index * 7919) % 99991}`).join(' ');
    const content = JSON.stringify({ ...CHAT, messages: [{ role: 'user', content: words }] });
    expect(content.length).toBeGreaterThan(LIMITS.requestBodyBytes);
    const reply = await send(`${llm.url}/v1/chat/completions`, {
      method: 'POST',
      body: gzipSync(content),
      headers: { 'content-encoding': 'gzip' },
    });
    expect(reply.status).toBe(200);
    expect(provider.received[0]?.body).toBe(content);
  });
});

test('a compressed response that an expression reads is not decompressed far beyond its size, and passes as it is', async () => {
  await using backend = await httpUpstream((_, response) => {
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb('gzip'));
  });
  const set = { 'x-size': 'string(size(response.body))' };
  await using gate = await proxyGateway(backend.address, { transformations: { response: { set } } });
  const reply = await send(gate.url);
  expect(reply.headers).not.toHaveProperty('x-size');
  expect(reply.body.equals(bomb('gzip'))).toBe(true);
});

describe('answers with a content coding that the gateway did not ask for', () => {
  const CODINGS = ['gzip', 'deflate', 'br', 'zstd', 'gzip, gzip', 'x-unknown'];

  test.each(CODINGS)('an MCP server that answers with %s fails the call, with the cause', async (coding) => {
    const script: Script = ({ message }, response) => {
      if (message?.method !== 'tools/call') return false;
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': coding });
      response.end(bomb('gzip').subarray(0, 1000));
      return true;
    };
    await using server = await mcpUpstream({ script });
    await using gate = await gateway(mcpConfig([{ name: 'one', mcp: { host: server.url } }]));
    const session = await openSession(`${gate.url}/mcp`);
    const { error } = await session.request('tools/call', { name: 'say' });
    expect(error.message).toContain(`the content-encoding \`${coding}\`, which the gateway did not ask for`);
    expect((await session.request('tools/list')).result.tools).toHaveLength(1);
  });

  test('an MCP server that compresses its event stream fails the call, with the cause', async () => {
    const script: Script = ({ message }, response) => {
      if (message?.method !== 'tools/call') return false;
      response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' });
      const gzip = createGzip();
      gzip.pipe(response);
      gzip.end(`data: {"jsonrpc":"2.0","id":${JSON.stringify(message.id)},"result":{}}\n\n`);
      return true;
    };
    await using server = await mcpUpstream({ script });
    await using gate = await gateway(mcpConfig([{ name: 'one', mcp: { host: server.url } }]));
    const session = await openSession(`${gate.url}/mcp`);
    const { error } = await session.request('tools/call', { name: 'say' });
    expect(error.message).toContain('the content-encoding `gzip`');
  });

  test.each(CODINGS)(
    'keys of an identity provider with the coding %s are not read, with the cause',
    async (coding) => {
      await using idp = await startIdp();
      idp.answers.set('certs', (_, response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': coding });
        response.end(gzipSync(JSON.stringify({ keys: idp.published })));
      });
      await using guarded = await protectedGateway([{ policies: signIn(idp.issuer) }]);
      expect((await call(guarded, idp.token())).status).toBe(503);
      expect((await guarded.accessLine(1))['error.detail']).toContain(`the content-encoding ${coding}`);
    },
  );

  test('a response of a provider with two codings is a 502 with the cause', async () => {
    await using provider = await llmProvider((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip, gzip' });
      response.end(gzipSync(bomb('gzip')));
    });
    await using gate = await llmGateway(provider);
    expect((await chat(gate)).status).toBe(502);
    expect((await gate.accessLine(1))['error.detail']).toContain('the content-encoding `gzip, gzip`');
  });
});
