import { connect, type Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import type { Message } from '../../../kit/grpc-service.ts';
import { echo, immediate, part, piece, processor, type Script } from '../../../kit/processor.ts';
import { proxyGateway } from '../../../kit/routes.ts';
import { send } from '../../../kit/send.ts';
import { until } from '../../../kit/until.ts';
import { httpUpstream } from '../../../kit/upstream.ts';

const answering = (): ReturnType<typeof httpUpstream> =>
  httpUpstream((_, response, { body }) => response.end(`reached ${body}`));

const policy = (host: string, more: object = {}): object => ({ extProc: { host, ...more } });

/** For services that do not answer. */
const impatient = (host: string, more: object = {}): object =>
  policy(host, { policies: { http: { requestTimeout: '300ms' } }, ...more });

/** Answers as a service should, except about one part. */
const except =
  (name: string, wrong: Script): Script =>
  (message, call) =>
    message.request === name ? wrong(message, call) : echo()(message, call);

const MANY = Array.from({ length: 101 }, (_, index) => ({ header: { key: `x-${index}`, value: 'a' } }));

const WRONG: Readonly<Record<string, Script>> = {
  'does not answer': () => undefined,
  'ends the call': (_, call) => call.end(),
  'ends the call with an error': (_, call) => call.fail(),
  // envoyproxy/envoy#39994: answers that nothing has asked for.
  'answers about something else': (_, call) => call.answer(part('response_body')),
  'answers about trailers': (_, call) => call.answer({ request_trailers: {} }),
  'sends empty messages only': (_, call) => {
    for (let sent = 0; sent < 100; sent += 1) call.answer({});
  },
  'sets 101 headers': (message, call) =>
    call.answer(part(message.request, { header_mutation: { set_headers: MANY } })),
  'sends more than it may': (message, call) =>
    call.answer(piece(message.request, Buffer.alloc(3_000_000), true)),
};

describe.each(['request_headers', 'response_headers'])('a service of extProc that, about %s,', (name) => {
  test.each(Object.entries(WRONG))('%s rejects the request, or is ignored', async (_, wrong) => {
    await using backend = await answering();
    await using service = await processor(except(name, wrong));
    await using gate = await proxyGateway(backend.address, impatient(service.address));
    const request = { method: 'POST', body: 'a'.repeat(100_000) };
    const reply = await send(gate.url, request);
    expect(reply).toMatchObject({ status: 500, text: 'external processing failed' });
    await using open = await proxyGateway(
      backend.address,
      impatient(service.address, { failureMode: 'failOpen' }),
    );
    expect(await send(open.url, request)).toMatchObject({ status: 200, text: `reached ${request.body}` });
    await until(() => service.open === 0);
  });
});

describe('extProc', () => {
  test('extProc rejects a request whose service is not there, or passes it on', async () => {
    await using backend = await answering();
    const gone = await processor(echo());
    const { address } = gone;
    await gone[Symbol.asyncDispose]();
    await using gate = await proxyGateway(backend.address, policy(address));
    expect(await send(gate.url, { method: 'POST', body: 'a' })).toMatchObject({ status: 500 });
    await using open = await proxyGateway(backend.address, policy(address, { failureMode: 'failOpen' }));
    expect(await send(open.url, { method: 'POST', body: 'a' })).toMatchObject({ text: 'reached a' });
  });

  test.each(['buffered', 'bufferedPartial'])(
    'extProc with failOpen passes on a body that was sent %s',
    async (mode) => {
      await using backend = await answering();
      await using service = await processor((message, call) => {
        if (message.request.endsWith('headers')) call.answer(part(message.request));
        else call.fail();
      });
      const processingOptions = { requestBodyMode: mode, responseBodyMode: 'none' };
      await using gate = await proxyGateway(
        backend.address,
        policy(service.address, { failureMode: 'failOpen', processingOptions }),
        { frontendPolicies: { http: { maxBufferSize: mode === 'buffered' ? 300_000 : 100 } } },
      );
      const body = 'ab'.repeat(100_000);
      expect(await send(gate.url, { method: 'POST', body })).toMatchObject({ text: `reached ${body}` });
    },
  );

  test.each(['failClosed', 'failOpen'])(
    'extProc with %s cuts off a response of which the service returned a part',
    async (failureMode) => {
      await using backend = await answering();
      await using service = await processor(
        except('response_body', (_, call) => {
          call.answer(piece('response_body', 'part', false));
          call.fail();
        }),
      );
      await using gate = await proxyGateway(backend.address, policy(service.address, { failureMode }));
      await expect(send(gate.url)).rejects.toThrow();
      expect(await send(gate.url, { method: 'HEAD' })).toMatchObject({ status: 200 });
    },
  );

  test.each(['failClosed', 'failOpen'])(
    'extProc with %s rejects a request of which the backend has seen a part',
    async (failureMode) => {
      await using backend = await answering();
      await using service = await processor((message, call) => {
        if (message.request === 'request_headers') call.answer(part('request_headers'));
        else if (call.received.length === 2) call.answer(piece('request_body', 'part', false));
        else call.fail();
      });
      await using gate = await proxyGateway(backend.address, policy(service.address, { failureMode }));
      const reply = await send(gate.url, { method: 'POST', body: 'a'.repeat(200_000) });
      expect(reply).toMatchObject({ status: 500, text: 'external processing failed' });
      expect(backend.received.map(({ body }) => body)).toEqual(['']);
    },
  );

  test('extProc rejects an answer about a streamed body that says nothing of the body', async () => {
    await using backend = await answering();
    await using service = await processor((message, call) => call.answer(part(message.request)));
    await using gate = await proxyGateway(backend.address, policy(service.address));
    expect(await send(gate.url, { method: 'POST', body: 'a' })).toMatchObject({ status: 500 });
  });

  // kubernetes-sigs/gateway-api-inference-extension#2934: a service that decides by the body answers about the headers last.
  test('extProc waits for a service that reads the whole body first', async () => {
    await using backend = await answering();
    await using service = await processor((message, call) => {
      const { request: name }: Message = message;
      if (name === 'request_headers') return;
      if (name !== 'request_body') echo()(message, call);
      else if (message.request_body.end_of_stream) {
        call.answer(part('request_headers'));
        const bodies = call.received.filter(({ request }) => request === 'request_body');
        const whole = Buffer.concat(bodies.map(({ request_body: { body } }) => body));
        call.answer(piece(name, whole.subarray(0, 10), false));
        call.answer(piece(name, whole.subarray(10), true));
      }
    });
    await using gate = await proxyGateway(backend.address, policy(service.address));
    const body = 'ab'.repeat(200_000);
    expect(await send(gate.url, { method: 'POST', body })).toMatchObject({ text: `reached ${body}` });
  });

  // envoyproxy/envoy#44201: a chunked response without content, and a mode that the service changes.
  test.each(['', 'text'])(
    'extProc ends a chunked response of %j whose mode the service changes',
    async (text) => {
      await using backend = await httpUpstream((_, response) => {
        response.flushHeaders();
        response.end(text);
      });
      await using service = await processor((message, call) => {
        if (message.request !== 'response_headers') echo()(message, call);
        else call.answer({ ...part('response_headers'), mode_override: { response_body_mode: 4 } });
      });
      const processingOptions = { responseBodyMode: 'buffered', allowModeOverride: true };
      await using gate = await proxyGateway(backend.address, policy(service.address, { processingOptions }));
      expect(await send(gate.url)).toMatchObject({ status: 200, text });
    },
  );

  // rossoctl/cortex#820: the length of the body is that of the new one, also if the service leaves the header as it was.
  test.each(['', 'a', 'much longer than before'])(
    'extProc sends a body that becomes %j with its length',
    async (text) => {
      await using backend = await httpUpstream((_, response) =>
        response.writeHead(200, { 'content-length': '6' }).end('before'),
      );
      await using service = await processor((message, call) => {
        const { request: name }: Message = message;
        call.answer(part(name, name.endsWith('body') ? { body_mutation: { body: Buffer.from(text) } } : {}));
      });
      const processingOptions = { requestBodyMode: 'buffered', responseBodyMode: 'buffered' };
      await using gate = await proxyGateway(backend.address, policy(service.address, { processingOptions }));
      const reply = await send(gate.url, { method: 'POST', body: 'before' });
      expect(reply).toMatchObject({ status: 200, text });
      expect(reply.headers['content-length']).toBe(String(text.length));
      expect(backend.received[0]?.body).toBe(text);
    },
  );

  // agentgateway/agentgateway#2071: an immediate response after a part of the body was sent.
  test('extProc cuts off a response that the service replaces too late', async () => {
    await using backend = await answering();
    await using service = await processor(
      except('response_body', (_, call) => {
        call.answer(piece('response_body', 'part', false));
        call.answer(immediate(403, 'secret'));
      }),
    );
    await using gate = await proxyGateway(backend.address, policy(service.address));
    await expect(send(gate.url)).rejects.toThrow();
    await until(() => service.open === 0);
  });

  // agentgateway/agentgateway#1400: services send bytes, which need not be UTF-8, and statuses that none is.
  test.each([
    [403, 403],
    [0, 200],
    [9999, 500],
  ])('extProc answers with an immediate response of status %i', async (code, status) => {
    await using backend = await answering();
    await using service = await processor((_, call) => {
      const bytes = Buffer.from([0xff, 0x00, 0x61]);
      call.answer({ immediate_response: { status: { code }, body: bytes, grpc_status: { status: 7 } } });
    });
    await using gate = await proxyGateway(backend.address, policy(service.address));
    const response = await fetch(gate.url, { method: 'POST', body: 'a' });
    expect(response.status).toBe(status);
    expect(Buffer.from(await response.arrayBuffer())).toEqual(Buffer.from([0xff, 0x00, 0x61]));
  });

  // envoyproxy/envoy#41654: bodies in several pieces, through two services of which one is slower.
  test('extProc passes large bodies through two services', async () => {
    await using backend = await answering();
    const slow =
      (change: string): Script =>
      (message, call) => {
        setImmediate(() => echo((text) => text.replaceAll('-', change))(message, call));
      };
    await using first = await processor(slow('-'));
    await using second = await processor(slow('+'));
    await using inner = await proxyGateway(backend.address, policy(second.address));
    await using gate = await proxyGateway(inner.url, policy(first.address));
    const body = '-x'.repeat(1_000_000);
    const reply = await send(gate.url, { method: 'POST', body });
    expect(reply.text).toBe(`reached ${body.replaceAll('-', '+')}`);
  });

  test('extProc passes on the response of a backend that does not read the request', async () => {
    await using backend = await httpUpstream(
      (request, response) => {
        response.writeHead(413).end('too large');
        request.on('error', () => undefined);
      },
      { streaming: true },
    );
    await using service = await processor(echo());
    await using gate = await proxyGateway(backend.address, { extProc: { host: service.address } });
    const body = 'a'.repeat(20_000_000);
    expect(await send(gate.url, { method: 'POST', body })).toMatchObject({ status: 413, text: 'too large' });
    await until(() => service.open === 0);
  });

  test('extProc does not wait for the end of a body for ever', async () => {
    await using backend = await answering();
    await using service = await processor((message, call) => {
      if (message.request.endsWith('headers')) call.answer(part(message.request));
      else if (message.request === 'request_body') echo()(message, call);
      else if (!message.response_body.end_of_stream)
        call.answer(piece('response_body', message.response_body.body, false));
    });
    await using gate = await proxyGateway(backend.address, impatient(service.address));
    await expect(send(gate.url, { method: 'POST', body: 'a' })).rejects.toThrow();
    await until(() => service.open === 0);
  });

  test('extProc makes a service wait for a client that does not read', async () => {
    await using backend = await answering();
    let written = 0;
    const flood = Buffer.alloc(65_536, 0x61);
    await using service = await processor((message, call) => {
      if (message.request !== 'response_body' || written > 0) {
        if (message.request.endsWith('headers')) call.answer(part(message.request));
        return;
      }
      const more = (): void => {
        if (written > 200_000_000) return;
        written += flood.length;
        call.answer(piece('response_body', flood, false), more);
      };
      more();
    });
    await using gate = await proxyGateway(backend.address, { extProc: { host: service.address } });
    const { socket, reply } = opened(gate.port, 'GET / HTTP/1.1\r\nhost: a\r\n\r\n');
    socket.pause();
    await until(() => written > 1_000_000);
    // A service that did not have to wait would write everything meanwhile.
    for (let sent = 0; sent < 300; sent += 1) await send(`${gate.url}/live`, { method: 'HEAD' });
    expect(written).toBeLessThan(50_000_000);
    socket.destroy();
    await reply;
  });

  // envoyproxy/envoy#39514: a body must not be collected in memory because the service is slow.
  test('extProc does not read more of a body than the service takes', async () => {
    await using backend = await answering();
    await using service = await processor(() => undefined);
    await using gate = await proxyGateway(backend.address, {
      extProc: { host: service.address, policies: { http: { requestTimeout: '1s' } } },
    });
    const { socket, reply } = opened(
      gate.port,
      'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000000\r\n\r\n',
    );
    const chunk = Buffer.alloc(65_536, 0x61);
    const more = (): void => {
      while (!socket.destroyed && socket.write(chunk));
    };
    socket.on('drain', more);
    more();
    // The service takes everything and answers nothing: only its memory grows, until the time is over.
    await until(() => service.calls[0] !== undefined && service.calls[0].received.length > 20);
    socket.destroy();
    await reply;
    await until(() => service.open === 0);
  });

  // envoyproxy/envoy#47161: what follows the handshake of an upgrade is no body, and nothing waits for it.
  test('extProc does not wait for what follows the handshake of an upgrade', async () => {
    await using backend = await answering();
    await using service = await processor(echo());
    await using gate = await proxyGateway(backend.address, policy(service.address));
    const headers = {
      connection: 'upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    };
    expect(await send(gate.url, { headers })).toMatchObject({ status: 200, text: 'reached ' });
    expect(service.calls[0]?.received[0].request_headers.end_of_stream).toBe(true);
  });

  test('extProc passes events on as they arrive', async () => {
    let next = (): void => undefined;
    await using backend = await httpUpstream((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: 1\n\n');
      next = () => void response.end('data: 2\n\n');
    });
    await using service = await processor(echo((text) => text.replace('data', 'event')));
    await using gate = await proxyGateway(backend.address, policy(service.address));
    const response = await fetch(gate.url);
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader?.read())?.value).toBe('event: 1\n\n');
    next();
    expect((await reader?.read())?.value).toBe('event: 2\n\n');
    expect((await reader?.read())?.done).toBe(true);
    await until(() => service.open === 0);
  });

  test('extProc does not hold a client up with a stream whose headers the service has not answered', async () => {
    await using backend = await httpUpstream((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
    });
    await using service = await processor(except('response_headers', () => undefined));
    await using gate = await proxyGateway(backend.address, policy(service.address));
    expect(await send(gate.url)).toMatchObject({ status: 500 });
  });

  test('extProc ends the call when the client disconnects', async () => {
    await using backend = await answering();
    await using service = await processor(() => undefined);
    await using gate = await proxyGateway(backend.address, { extProc: { host: service.address } });
    const { socket, reply } = opened(gate.port, 'GET / HTTP/1.1\r\nhost: a\r\n\r\n');
    await until(() => service.open === 1);
    socket.destroy();
    await reply;
    await until(() => service.open === 0);
    expect(backend.received).toHaveLength(0);
  });
});

/** A client that has sent this; `reply` resolves when the connection has closed. */
function opened(port: number, text: string): { socket: Socket; reply: Promise<void> } {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined).write(text);
  return { socket, reply: new Promise((resolve) => void socket.on('close', () => resolve())) };
}
