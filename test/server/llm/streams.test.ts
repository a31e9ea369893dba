import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { AT_ONCE } from '../../kit/at-once.ts';
import {
  answering,
  bodyOf,
  CHAT,
  chat,
  chunk,
  completion,
  DONE,
  EMPTY_ANSWER,
  errorOf,
  FINISH,
  llmGateway,
  llmProvider,
  streaming,
  USAGE,
  webhook,
} from '../../kit/llm-provider.ts';
import { until } from '../../kit/until.ts';
import { rawUpstream } from '../../kit/upstream.ts';

// A minute of silence is too long for a test, and a megabyte for its loop over every byte.
const SHORT = { options: { limits: { streamIdle: 300, streamFrameBytes: 10_000 } } };

const STREAM = { ...CHAT, stream: true };
const tokens = (...words: string[]): string => words.map((content) => chunk({ content })).join('');

/** Asks for a stream and returns once its head is here. */
async function opened(url: string): Promise<IncomingMessage> {
  const call = request(`${url}/v1/chat/completions`, { method: 'POST' });
  call.on('error', () => undefined).end(JSON.stringify(STREAM));
  const [response] = (await once(call, 'response')) as [IncomingMessage];
  return response.on('error', () => undefined);
}

/** Bytes of a stream that holds what servers may write: comments, fields without a space, data of several lines. */
const ODD = [
  ': hello\n\n',
  'event: message\nid: 7\n',
  chunk({ role: 'assistant', content: 'Grüße 🎉' }).replace('data: ', 'data:'),
  'data: {"choices":[{"index":0,\ndata: "delta":{"content":"x"}}]}\n\n',
  chunk(undefined, { usage: USAGE }),
  DONE,
].join('');

describe('LLM streams', () => {
  test('a stream tells nginx in front of the gateway not to hold tokens back, also if the provider does not', async () => {
    await using provider = await llmProvider(streaming((response) => void response.end(tokens('a') + DONE)));
    await using served = await llmGateway(provider);
    expect((await chat(served, STREAM)).headers['x-accel-buffering']).toBe('no');
  });

  test.each([
    ['LF', ODD],
    ['CRLF', ODD.replaceAll('\n', '\r\n')],
    ['CR', ODD.replaceAll('\n', '\r')],
    ['a byte order mark', `\uFEFF${ODD}`],
    ['no empty line at its end', ODD.trimEnd()],
  ])('a stream keeps its bytes at any split and is counted, with %s', async (_, text) => {
    const bytes = Buffer.from(text);
    let cut = 0;
    await using provider = await llmProvider(
      streaming(async (response) => {
        response.write(bytes.subarray(0, cut));
        await new Promise(setImmediate);
        response.end(bytes.subarray(cut));
      }),
    );
    await using served = await llmGateway(provider);
    // If the client sent its own `stream_options`, no event is removed.
    const body = { ...STREAM, stream_options: { include_usage: true } };
    for (cut = 1; cut < bytes.length; cut += 3) {
      const reply = await chat(served, body);
      if (!reply.body.equals(bytes)) expect(reply.text, `cut at ${cut}`).toBe(text);
    }
    const line = await served.accessLine(1);
    expect(line['gen_ai.usage.output_tokens']).toBe('7');
    expect(line['gen_ai.response.model']).toBe('acme-mini-1');
    const all = served.accessLog.filter((entry) => entry.includes('output_tokens=7'));
    expect(all).toHaveLength(served.accessLog.length);
  });

  test('a stream is requested with usage, and the usage event is hidden from the client', async () => {
    const before = tokens('a', 'b') + FINISH;
    await using provider = await llmProvider(
      streaming((response) => response.end(before + chunk(undefined, { usage: USAGE }) + DONE)),
    );
    await using served = await llmGateway(provider);
    const reply = await chat(served, STREAM);
    expect(reply.text).toBe(before + DONE);
    expect(bodyOf(provider)).toEqual({ ...STREAM, stream_options: { include_usage: true } });
    expect(await served.accessLine(1)).toMatchObject({
      'gen_ai.usage.input_tokens': '12',
      'gen_ai.usage.output_tokens': '7',
    });
  });

  // BerriAI/litellm#28735
  test.each([
    ['compact', (text: string) => text],
    [
      'with spaces',
      (text: string) => text.replaceAll('"usage":null', ' "usage": null').replaceAll(',"', ', "'),
    ],
  ])('events have no `usage: null` that only the gateway asked for: %s', async (_, written) => {
    const said = chunk({ content: 'He said ,"usage":null' });
    const withNull = (text: string): string => text.replaceAll('}\n', ',"usage":null}\n');
    const sent = withNull(said + FINISH);
    await using provider = await llmProvider(
      streaming((response) => response.end(written(sent) + chunk(undefined, { usage: USAGE }) + DONE)),
    );
    await using served = await llmGateway(provider);
    const { text } = await chat(served, STREAM);
    expect(text.match(/"usage": ?null/g)).toBeNull();
    expect(text.replaceAll(', "', ',"')).toBe(said + FINISH + DONE);
    const asked = await chat(served, { ...STREAM, stream_options: { include_usage: true } });
    expect(asked.text).toContain(written(sent));
  });

  test('a final usage event without its empty line is counted and removed from the stream', async () => {
    const usage = chunk(undefined, { usage: USAGE }).trimEnd();
    const sent = tokens('a') + FINISH;
    await using provider = await llmProvider(streaming((response) => response.end(sent + usage)));
    await using served = await llmGateway(provider);
    expect((await chat(served, STREAM)).text).toBe(sent);
    expect((await served.accessLine(1))['gen_ai.usage.output_tokens']).toBe('7');
  });

  test('usage is not requested when the configuration turns streaming off', async () => {
    await using provider = await llmProvider();
    await using served = await llmGateway(provider, { model: { overrides: { stream: false } } });
    const { text } = await chat(served, STREAM);
    expect(text).toMatch(/^data: .*"content":"Hello\.".*data: \[DONE\]\n\n$/s);
    expect(text).not.toContain('"usage"');
    expect(bodyOf(provider)).toEqual({ ...CHAT, stream: false });
  });

  test.each(['reset', 'closed'])(
    'a stream that is %s in the middle ends with an error event and without [DONE]',
    async (how) => {
      const part = tokens('Hel', 'lo');
      let leave = (): void => undefined;
      await using provider = await rawUpstream((socket) => {
        const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked';
        socket.write(`${head}\r\n\r\n${Buffer.byteLength(part).toString(16)}\r\n${part}\r\n`);
        leave = () => void (how === 'reset' ? socket.resetAndDestroy() : socket.end());
      });
      await using served = await llmGateway(provider);
      const response = await opened(served.url);
      let text = '';
      response.setEncoding('utf8').on('data', (data: string) => {
        text += data;
      });
      await until(() => text === part);
      leave();
      await once(response, 'end');
      expect(text.startsWith(part)).toBe(true);
      const event = JSON.parse(text.slice(part.length + 'data: '.length));
      expect(event).toMatchObject({ error: { type: 'api_error', code: 'upstream_failed' } });
      expect(await served.accessLine(1)).toMatchObject({ reason: 'UpstreamFailure', 'http.status': '200' });
    },
  );

  test('a stalled stream ends with an error event, and the provider call is aborted', async () => {
    let left = false;
    await using provider = await llmProvider(
      streaming((response) => {
        response.write(tokens('Hel'));
        response.once('close', () => {
          left = true;
        });
      }),
    );
    await using served = await llmGateway(provider, SHORT);
    const reply = await chat(served, STREAM);
    expect(reply.text.slice(tokens('Hel').length)).toContain('"code":"stream_idle"');
    expect(reply.text).not.toContain('[DONE]');
    await until(() => left);
    expect(await served.accessLine(1)).toMatchObject({ reason: 'Timeout' });
  });

  test('a stream with an event that does not end is aborted', async () => {
    await using provider = await llmProvider(
      streaming((response) => response.write(`data: ${'x'.repeat(20_000)}`)),
    );
    await using served = await llmGateway(provider, SHORT);
    const reply = await chat(served, STREAM);
    expect(reply.text).toMatch(/^data: \{"error":.*"code":"upstream_failed"/);
    expect(await served.accessLine(1)).toMatchObject({ error: 'an event of the stream is too long' });
  });

  test('a stream whose client disconnects is aborted at the provider, and its counts are logged', async () => {
    let left = false;
    await using provider = await llmProvider(
      streaming((response) => {
        response.write(chunk({ content: 'Hel' }, { usage: { prompt_tokens: 12, completion_tokens: 1 } }));
        response.once('close', () => {
          left = true;
        });
      }),
    );
    await using served = await llmGateway(provider);
    const response = await opened(served.url);
    await once(response, 'data');
    response.destroy();
    const leftAt = performance.now();
    await until(() => left);
    expect(performance.now() - leftAt).toBeLessThan(AT_ONCE);
    expect(await served.accessLine(1)).toMatchObject({
      'gen_ai.usage.input_tokens': '12',
      'gen_ai.usage.output_tokens': '1',
    });
  });

  test.each<[string, (text: string) => string]>([
    ['plain', (text) => chunk({ content: text })],
    ['reasoning', (text) => chunk({ reasoning_content: text })],
    [
      'a tool call',
      (text) =>
        chunk({ tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { arguments: text } }] }),
    ],
    ['with a report of almost nothing', (text) => chunk({ content: text }, { usage: { prompt_tokens: 9 } })],
  ])('a stream whose client disconnects is charged by the text that was sent: %s', async (kind, event) => {
    let sent = 0;
    await using provider = await llmProvider(
      streaming((response) => {
        response.write(chunk({ role: 'assistant', content: '' }));
        // 100 events of 8 bytes: 200 tokens.
        for (; sent < 100; sent += 1) response.write(event(' weiß ok'.slice(0, 7)));
        response.write(chunk({ content: 'last' }));
      }),
    );
    await using served = await llmGateway(provider);
    const response = await opened(served.url);
    let text = '';
    response.setEncoding('utf8').on('data', (data: string) => {
      text += data;
    });
    await until(() => text.includes('last'));
    response.destroy();
    const line = await served.accessLine(1);
    expect(line['gw.ai.usage.estimated']).toBe('the client disconnected before the provider reported usage');
    expect(line['gen_ai.usage.input_tokens']).toBe(kind.startsWith('with') ? '9' : '1');
    expect(Number(line['gen_ai.usage.output_tokens'])).toBeGreaterThanOrEqual(195);
    expect(Number(line['gen_ai.usage.output_tokens'])).toBeLessThanOrEqual(210);
  });

  test('a stream whose client opts out of the usage report is charged by an estimate', async () => {
    await using provider = await llmProvider(
      streaming((response) => response.end(tokens('0123456789', '0123456789') + FINISH + DONE)),
    );
    await using served = await llmGateway(provider);
    await chat(served, { ...STREAM, stream_options: { include_usage: false } });
    expect(await served.accessLine(1)).toMatchObject({
      'gen_ai.usage.output_tokens': '5',
      'gw.ai.usage.estimated': 'the provider reported no usage',
    });
  });

  test('a stream of a client that does not read applies back-pressure to the provider', async () => {
    let written = 0;
    const event = tokens('x'.repeat(8_000));
    await using provider = await llmProvider(
      streaming((response) => {
        const more = (): void => {
          while (!response.destroyed && written < 100_000_000) {
            written += event.length;
            if (!response.write(event)) break;
          }
        };
        response.on('drain', more);
        more();
      }),
    );
    await using served = await llmGateway(provider);
    const response = await opened(served.url);
    response.pause();
    let before = -1;
    // The socket buffers of the system fill up first; then the stream stops.
    await until(async () => {
      before = written;
      await new Promise((resolve) => setTimeout(resolve, 100));
      return written === before;
    });
    expect(written).toBeLessThan(20_000_000);
    response.destroy();
  });
});

describe('responses in place of a stream', () => {
  test.each([
    ['without guardrails', {}],
    ['with guardrails', { llm: { guardrails: { response: [webhook({ address: '127.0.0.1:1' })] } } }],
  ])('a stalled response in place of a stream is aborted, also at the provider, %s', async (_, more) => {
    let left = false;
    await using provider = await llmProvider((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
      response.write('{"model":"acme-mini-1"');
      response.once('close', () => {
        left = true;
      });
    });
    await using served = await llmGateway(provider, { ...SHORT, ...more });
    expect((await chat(served)).status).toBe(504);
    await until(() => left);
    expect(await served.accessLine(1)).toMatchObject({
      reason: 'Timeout',
      error: expect.stringContaining('the response body was silent for too long'),
      'gen_ai.usage.input_tokens': '1',
    });
  });

  test('a call whose client disconnects before the response is charged for its prompt', async () => {
    let isAsked = false;
    await using provider = await llmProvider(() => {
      isAsked = true;
    });
    await using served = await llmGateway(provider);
    const messages = [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'x'.repeat(400) },
          { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
        ],
      },
    ];
    const call = request(`${served.url}/v1/chat/completions`, { method: 'POST' });
    call.on('error', () => undefined).end(JSON.stringify({ ...CHAT, messages }));
    await until(() => isAsked);
    call.destroy();
    expect(await served.accessLine(1)).toMatchObject({
      'gen_ai.usage.input_tokens': '1100',
      'gen_ai.usage.output_tokens': '0',
      'gw.ai.usage.estimated': 'the client disconnected before the provider reported usage',
    });
  });

  test('a response without usage is charged by its length', async () => {
    await using provider = await llmProvider(answering(completion('x'.repeat(80), { usage: undefined })));
    await using served = await llmGateway(provider);
    await chat(served);
    expect(await served.accessLine(1)).toMatchObject({
      'gen_ai.usage.input_tokens': '1',
      'gen_ai.usage.output_tokens': '20',
      'gw.ai.usage.estimated': 'the provider reported no usage',
    });
  });

  test.each([500, 429])('a provider error with %i costs nothing', async (status) => {
    await using provider = await llmProvider(answering('no', status));
    await using served = await llmGateway(provider);
    await chat(served);
    expect(await served.accessLine(1)).not.toHaveProperty('gen_ai.usage.input_tokens');
  });
});

describe('provider errors', () => {
  test.each([
    [403, 'application/json', '{"error":{"message":"no"}}'],
    [429, 'application/json', '{"error":{"message":"slow down"}}'],
    [500, 'application/problem+json', '{"error":{"message":"no","detail":"x"}}'],
  ])(
    'a provider error keeps its status %i, its body and retry-after, also for a stream',
    async (status, type, text) => {
      await using provider = await llmProvider(
        answering(text, status, { 'content-type': type, 'retry-after': '7' }),
      );
      await using served = await llmGateway(provider, { params: { apiKey: 'sk-1' } });
      const reply = await chat(served, STREAM);
      expect(reply).toMatchObject({ status, text });
      expect(reply.headers).toMatchObject({ 'content-type': type, 'retry-after': '7' });
    },
  );

  test('a provider error is forwarded unchanged when the key is too short to be redacted', async () => {
    const text = '{"error":{"message":"bad request"}}';
    await using provider = await llmProvider(answering(text, 400));
    await using served = await llmGateway(provider, { params: { apiKey: 'bad' } });
    expect((await chat(served)).text).toBe(text);
  });

  test('a provider error does not show the provider key in any encoding', async () => {
    const key = 'sk-key/with+"signs"?';
    const forms = [key, Buffer.from(key).toString('base64'), encodeURIComponent(key), JSON.stringify(key)];
    await using provider = await llmProvider(answering(`bad: ${forms.join(' ')}`, 400));
    await using served = await llmGateway(provider, { params: { apiKey: key } });
    const reply = await chat(served);
    expect(reply.status).toBe(400);
    expect(errorOf(reply).message).toMatch(/HTTP 400: bad: <redacted>/);
    for (const form of forms) expect(reply.text).not.toContain(form.replace(/^"|"$|=+$/g, ''));
    expect(served.log.join('') + served.accessLog.join('')).not.toContain('with+');
  });

  test.each([200, 400])(
    'a provider response with status %i has no header with the provider key',
    async (status) => {
      const key = 'sk-key/with+"signs"?';
      const headers = {
        'x-key': `Bearer ${key}`,
        'x-debug': `auth=${encodeURIComponent(key)};`,
        'x-kept': 'sk-key',
      };
      await using provider = await llmProvider(answering(EMPTY_ANSWER, status, headers));
      await using served = await llmGateway(provider, { params: { apiKey: key } });
      const reply = await chat(served);
      expect(reply.status).toBe(status);
      expect(reply.headers).toMatchObject({ 'x-kept': 'sk-key' });
      expect(reply.headers).not.toHaveProperty('x-key');
      expect(reply.headers).not.toHaveProperty('x-debug');
    },
  );

  test('an unreachable provider is a 503 in the OpenAI error format', async () => {
    await using served = await llmGateway({ address: '127.0.0.1:1' });
    const reply = await chat(served);
    expect(reply.status).toBe(503);
    expect(errorOf(reply)).toMatchObject({ type: 'api_error' });
  });
});
