import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { brotliCompressSync, constants, createGzip, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import {
  CHAT,
  chat,
  chunk,
  completion,
  DONE,
  errorOf,
  guardrail,
  llmGateway,
  llmProvider,
  webhook,
} from '../../kit/llm-provider.ts';
import { rawRequest, sendRaw } from '../../kit/raw-http.ts';
import { until } from '../../kit/until.ts';
import type { Answer } from '../../kit/upstream.ts';

const JSON_TYPE = { 'content-type': 'application/json' };

/** A provider that compresses its responses regardless of accept-encoding, as some do. */
function encoded(bytes: Uint8Array, encoding: string, status = 200, headers: object = JSON_TYPE): Answer {
  return (_, response) => {
    const length = { 'content-length': String(bytes.byteLength) };
    response.writeHead(status, { ...headers, ...length, 'content-encoding': encoding });
    response.end(bytes);
  };
}

const FORMS = [
  ['gzip', 'gzip', gzipSync],
  ['gzip by its old name', 'x-gzip', gzipSync],
  ['gzip in capitals', 'GZIP', gzipSync],
  ['deflate', 'deflate', deflateSync],
  ['deflate without its wrapper', 'deflate', deflateRawSync],
  ['brotli', 'br', brotliCompressSync],
] as const;

describe('responses compressed without a request for it', () => {
  test.each(FORMS)(
    'a compressed response is decoded and counted, and its headers are correct: %s',
    async (_, encoding, compress) => {
      await using provider = await llmProvider(encoded(compress(completion('Hello.')), encoding));
      await using gate = await llmGateway(provider);
      const reply = await chat(gate);
      expect([reply.status, reply.text]).toEqual([200, completion('Hello.')]);
      expect(reply.headers).not.toHaveProperty('content-encoding');
      expect(Number(reply.headers['content-length'] ?? reply.text.length)).toBe(reply.text.length);
      expect((await gate.accessLine(1))['gen_ai.usage.output_tokens']).toBe('7');
    },
  );

  test.each(FORMS)('a compressed stream is decoded: %s', async (_, encoding, compress) => {
    const events = `${chunk({ content: 'Hel' })}${chunk({ content: 'lo.' })}${DONE}`;
    await using provider = await llmProvider(
      encoded(compress(events), encoding, 200, { 'content-type': 'text/event-stream' }),
    );
    await using gate = await llmGateway(provider);
    const reply = await chat(gate, { ...CHAT, stream: true });
    expect(reply.text).toBe(events);
    expect(reply.headers).not.toHaveProperty('content-encoding');
  });

  test('a compressed stream is decoded event by event, not at its end', async () => {
    const written: (() => void)[] = [];
    await using provider = await llmProvider(async (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' });
      const gzip = createGzip({ flush: constants.Z_SYNC_FLUSH });
      gzip.pipe(response);
      gzip.write(chunk({ content: 'one' }));
      await new Promise<void>((resolve) => written.push(resolve));
      gzip.end(chunk({ content: 'two' }) + DONE);
      await once(gzip, 'close');
    });
    await using gate = await llmGateway(provider);
    const call = request(`${gate.url}/v1/chat/completions`, { method: 'POST' });
    call.end(JSON.stringify({ ...CHAT, stream: true }));
    const [response] = (await once(call, 'response')) as [IncomingMessage];
    let text = '';
    response.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    await until(() => text.includes('one'));
    expect(text).not.toContain('two');
    for (const goOn of written) goOn();
    await until(() => text.includes('[DONE]'));
    expect(text).toContain('two');
  });

  test('the provider key is removed from a compressed error response', async () => {
    const apiKey = 'sk-provider-key';
    const refusal = `{"error":{"message":"bad key ${apiKey}","code":"invalid_api_key"}}`;
    await using provider = await llmProvider(encoded(gzipSync(refusal), 'gzip', 403));
    await using gate = await llmGateway(provider, { params: { apiKey } });
    const reply = await chat(gate);
    expect([reply.status, errorOf(reply).message]).toEqual([403, 'bad key <redacted>']);
    expect((await gate.accessLine(1))['error.type']).toBe('invalid_api_key');
  });

  test('a compressed response is sent to guardrails decoded', async () => {
    await using guard = await guardrail(({ choices = [] }) => ({
      body: { choices: choices.map(({ message }) => ({ message: { ...message, content: '*' } })) },
    }));
    await using provider = await llmProvider(encoded(gzipSync(completion('SECRET')), 'gzip'));
    await using gate = await llmGateway(provider, { model: { guardrails: { response: [webhook(guard)] } } });
    expect((await chat(gate)).text).not.toContain('SECRET');
  });

  test('an empty compressed response is no answer', async () => {
    await using provider = await llmProvider(encoded(Buffer.alloc(0), 'gzip'));
    await using gate = await llmGateway(provider);
    expect(errorOf(await chat(gate)).message).toContain('something else than a JSON object');
  });
});

describe('responses that cannot be decoded', () => {
  test.each([
    ['is not what it says', Buffer.from('no gzip'), 'gzip', 'is not valid gzip'],
    ['is cut off', gzipSync(completion('Hello.')).subarray(0, 40), 'gzip', 'is not valid gzip'],
    ['has an unknown encoding', Buffer.from('x'), 'zstd', 'content-encoding `zstd`'],
    ['has two', gzipSync(gzipSync('{}')), 'gzip, gzip', 'content-encoding `gzip, gzip`'],
  ])('a response whose encoded body %s is a 502', async (_, bytes, encoding, why) => {
    await using provider = await llmProvider(encoded(bytes, encoding));
    await using guard = await guardrail(() => ({}));
    await using gate = await llmGateway(provider, { model: { guardrails: { response: [webhook(guard)] } } });
    const reply = await chat(gate);
    expect(reply.status).toBe(502);
    expect(errorOf(reply).type).toBe('api_error');
    expect(errorOf(reply).message + (await gate.accessLine(1))['error.detail']).toContain(why);
  });

  test.each([false, true])(
    'a compressed response that expands without limit is cut off (stream: %s)',
    async (stream) => {
      const part = stream ? `data: ${'x'.repeat(1000)}\n\n` : `{"x":`;
      const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, part), { level: 9 });
      const type = stream ? 'text/event-stream' : 'application/json';
      await using provider = await llmProvider(encoded(bomb, 'gzip', 200, { 'content-type': type }));
      await using gate = await llmGateway(provider);
      const body = JSON.stringify({ ...CHAT, stream });
      const lines = ['Connection: close', `Content-Length: ${body.length}`];
      const { text } = await sendRaw(
        gate.port,
        rawRequest('POST /v1/chat/completions HTTP/1.1', lines, body),
      );
      expect(text.length).toBeGreaterThan(1024);
      const most = Math.max(LIMITS.responseBodyBytes, bomb.length * LIMITS.decodedRatio);
      expect(text.length).toBeLessThan(most + 1024 * 1024);
      expect(most).toBeLessThan(16 * 1024 * 1024);
      expect((await gate.accessLine(1))['error.detail']).toContain('decompresses to more');
    },
  );
});
