import { describe, expect, test } from 'vitest';
import { toStruct } from '../../../../src/server/transport/services/protobuf-struct.ts';
import { gateway } from '../../../kit/gateway.ts';
import { echo, immediate, mutation, part, piece, processor, sentHeaders } from '../../../kit/processor.ts';
import { proxyGateway, routesConfig } from '../../../kit/routes.ts';
import { send } from '../../../kit/send.ts';
import { until } from '../../../kit/until.ts';
import { httpUpstream } from '../../../kit/upstream.ts';

const upstream = (): ReturnType<typeof httpUpstream> =>
  httpUpstream((request, response, { body }) => {
    response.setHeader('x-backend', 'yes').setHeader('content-type', 'text/plain');
    response.end(`${request.method} ${request.url} ${body}`);
  });

const BUFFERED = { requestBodyMode: 'buffered', responseBodyMode: 'buffered' };
const HEADERS_ONLY = { requestBodyMode: 'none', responseBodyMode: 'none' };

describe('extProc', () => {
  test('extProc streams bodies through the service, which changes both and the headers', async () => {
    await using backend = await upstream();
    await using service = await processor(
      echo((text) => text.toUpperCase(), {
        request_headers: mutation({ 'x-user': 'ann' }, ['x-gone']),
        response_headers: mutation({ 'x-checked': 'yes' }, ['x-backend']),
      }),
    );
    await using gate = await proxyGateway(backend.address, { extProc: { host: service.address } });
    const reply = await send(`${gate.url}/a?b=c`, {
      method: 'POST',
      body: 'hello',
      headers: { 'x-gone': '1', 'x-list': ['a', 'b'] },
    });
    expect(reply).toMatchObject({ status: 200, text: 'POST /A?B=C HELLO' });
    expect(reply.headers).toMatchObject({ 'x-checked': 'yes' });
    expect(reply.headers).not.toHaveProperty('x-backend');
    expect(backend.received[0]?.headers).toMatchObject({ 'x-user': 'ann' });
    expect(backend.received[0]?.headers).not.toHaveProperty('x-gone');
    const [call] = service.calls;
    const [first] = call?.received ?? [];
    expect(sentHeaders(first)).toMatchObject({
      ':method': 'POST',
      ':path': '/a?b=c',
      ':scheme': 'http',
      'content-length': '5',
    });
    expect(first.protocol_config).toEqual({ request_body_mode: 4, response_body_mode: 4 });
    expect(call?.received.slice(1).some(({ protocol_config: config }) => config !== null)).toBe(false);
    expect(call?.received.map(({ request }) => request)).toContain('response_headers');
    await until(() => service.open === 0);
  });

  test('extProc sends a body whole once the service has answered about the headers', async () => {
    await using backend = await upstream();
    await using service = await processor((message, call) => {
      const name: string = message.request;
      if (name === 'request_body')
        call.answer(
          part(name, {
            header_mutation: mutation({ 'x-late': '1' }),
            body_mutation: { body: Buffer.from('longer than before') },
          }),
        );
      else call.answer(part(name));
    });
    await using gate = await proxyGateway(backend.address, {
      extProc: { host: service.address, processingOptions: BUFFERED },
    });
    const reply = await send(gate.url, { method: 'POST', body: 'a' });
    expect(reply).toMatchObject({ status: 200, text: 'POST / longer than before' });
    expect(backend.received[0]?.headers).toMatchObject({ 'content-length': '18', 'x-late': '1' });
    const received = service.calls[0]?.received ?? [];
    expect(received.map(({ request }) => request)).toEqual([
      'request_headers',
      'request_body',
      'response_headers',
      'response_body',
    ]);
    expect(received[1].request_body).toEqual({ body: Buffer.from('a'), end_of_stream: true });
    expect(received[3].response_body.end_of_stream).toBe(true);
  });

  test('extProc can clear a body', async () => {
    await using backend = await upstream();
    await using service = await processor((message, call) =>
      call.answer(
        part(
          message.request,
          message.request.endsWith('body') ? { body_mutation: { clear_body: true } } : {},
        ),
      ),
    );
    await using gate = await proxyGateway(backend.address, {
      extProc: { host: service.address, processingOptions: BUFFERED },
    });
    expect(await send(gate.url, { method: 'POST', body: 'abc' })).toMatchObject({ status: 200, text: '' });
    expect(backend.received[0]?.body).toBe('');
  });

  test('extProc with bufferedPartial sends the beginning of a body, and passes on the rest itself', async () => {
    await using backend = await upstream();
    await using service = await processor((message, call) =>
      call.answer(
        part(
          message.request,
          message.request === 'request_body' ? { body_mutation: { body: Buffer.from('[start]') } } : {},
        ),
      ),
    );
    await using gate = await proxyGateway(
      backend.address,
      {
        extProc: {
          host: service.address,
          processingOptions: { requestBodyMode: 'bufferedPartial', responseBodyMode: 'none' },
        },
      },
      { frontendPolicies: { http: { maxBufferSize: 100 } } },
    );
    await send(gate.url, { method: 'POST', body: `${'a'.repeat(100)}${'b'.repeat(200_000)}` });
    expect(service.calls[0]?.received[1].request_body).toEqual({
      body: Buffer.from('a'.repeat(100)),
      end_of_stream: false,
    });
    expect(backend.received[0]?.body).toBe(`[start]${'b'.repeat(200_000)}`);
  });

  test.each([
    ['request', 413],
    ['response', 502],
  ])('extProc rejects a %s whose body is too large to be buffered', async (side, status) => {
    await using backend = await upstream();
    await using service = await processor((message, call) => call.answer(part(message.request)));
    const options = { ...HEADERS_ONLY, [`${side}BodyMode`]: 'buffered' };
    await using gate = await proxyGateway(
      backend.address,
      { extProc: { host: service.address, failureMode: 'failOpen', processingOptions: options } },
      { frontendPolicies: { http: { maxBufferSize: 100 } } },
    );
    expect(await send(gate.url, { method: 'POST', body: 'a'.repeat(101) })).toMatchObject({ status });
    await until(() => service.open === 0);
  });

  test('extProc omits what is not to be sent', async () => {
    await using backend = await upstream();
    await using service = await processor((message, call) => call.answer(part(message.request)));
    await using gate = await proxyGateway(backend.address, {
      extProc: {
        host: service.address,
        processingOptions: { ...HEADERS_ONLY, responseHeaderMode: 'skip' },
      },
    });
    expect(await send(gate.url, { method: 'POST', body: 'abc' })).toMatchObject({ text: 'POST / abc' });
    expect(service.calls[0]?.received.map(({ request }) => request)).toEqual(['request_headers']);
    expect(service.calls[0]?.received[0].request_headers.end_of_stream).toBe(false);
  });

  test('extProc changes method, path and host, but not what ends a message or a connection', async () => {
    await using backend = await upstream();
    await using service = await processor(
      echo(undefined, {
        request_headers: mutation(
          {
            ':method': 'PUT',
            ':path': '/c?d=e',
            host: 'other.test',
            'content-length': '1',
            'transfer-encoding': 'chunked',
            connection: 'x-a',
            'x-split': 'a\r\nx-evil: 1',
            'bad name': 'a',
            'x-a': 'kept',
          },
          ['content-length', 'host', ':path'],
        ),
        response_headers: mutation({ ':status': '203', 'content-length': '1' }),
      }),
    );
    await using gate = await proxyGateway(backend.address, { extProc: { host: service.address } });
    const reply = await send(gate.url, { method: 'POST', body: 'hello' });
    expect(reply).toMatchObject({ status: 203, text: 'PUT /c?d=e hello' });
    const headers = backend.received[0]?.headers ?? {};
    expect(headers).toMatchObject({ host: 'other.test', 'x-a': 'kept' });
    expect(headers).not.toHaveProperty('x-split');
    expect(headers).not.toHaveProperty('x-evil');
  });

  test.each([':method', ':path', ':authority'])('extProc ignores a %s that is not valid', async (name) => {
    await using backend = await upstream();
    const value = { ':method': 'CONNECT', ':path': '/b/../c', ':authority': 'a b' }[name] ?? '';
    await using service = await processor(echo(undefined, { request_headers: mutation({ [name]: value }) }));
    await using gate = await proxyGateway(backend.address, { extProc: { host: service.address } });
    expect(await send(`${gate.url}/p`, { headers: { host: 'a.test' } })).toMatchObject({ text: 'GET /p ' });
    expect(backend.received[0]?.headers.host).toBe('a.test');
  });

  test('extProc lets the service answer a request', async () => {
    await using backend = await upstream();
    await using service = await processor((_, call) =>
      call.answer(immediate(403, 'not allowed', { 'x-why': 'rule 1' })),
    );
    await using gate = await proxyGateway(backend.address, { extProc: { host: service.address } });
    const reply = await send(gate.url, { method: 'POST', body: 'abc' });
    expect(reply).toMatchObject({ status: 403, text: 'not allowed' });
    expect(reply.headers).toMatchObject({ 'x-why': 'rule 1', 'content-type': 'text/plain; charset=utf-8' });
    expect(backend.received).toHaveLength(0);
    await until(() => service.open === 0);
  });

  test.each([BUFFERED, HEADERS_ONLY, {}])(
    'extProc lets the service replace a response (%j)',
    async (options) => {
      await using backend = await upstream();
      const at = options === BUFFERED ? 'response_body' : 'response_headers';
      await using service = await processor((message, call) =>
        message.request === at ? call.answer(immediate(451, 'hidden')) : echo()(message, call),
      );
      await using gate = await proxyGateway(backend.address, {
        extProc: { host: service.address, processingOptions: options },
      });
      const reply = await send(gate.url);
      expect(reply).toMatchObject({ status: 451, text: 'hidden' });
      expect(reply.headers).not.toHaveProperty('x-backend');
    },
  );

  test('extProc lets the service answer a request of which the backend has seen the beginning', async () => {
    await using backend = await upstream();
    await using service = await processor((message, call) => {
      const name: string = message.request;
      if (name === 'request_headers') call.answer(part(name));
      else if (name === 'request_body' && message.request_body.end_of_stream)
        call.answer(immediate(422, 'bad end'));
      else if (name === 'request_body') call.answer(piece(name, message.request_body.body, false));
    });
    await using gate = await proxyGateway(backend.address, { extProc: { host: service.address } });
    const body = 'a'.repeat(300_000);
    expect(await send(gate.url, { method: 'POST', body })).toMatchObject({ status: 422, text: 'bad end' });
  });

  test('extProc follows mode_override if it may', async () => {
    await using backend = await upstream();
    await using service = await processor((message, call) => {
      const name: string = message.request;
      if (name === 'request_headers')
        call.answer({ ...part(name), mode_override: { request_body_mode: 2, response_header_mode: 2 } });
      else
        call.answer(
          part(name, name === 'request_body' ? { body_mutation: { body: Buffer.from('changed') } } : {}),
        );
    });
    const extProc = (allowModeOverride: boolean): object => ({
      extProc: { host: service.address, processingOptions: { ...HEADERS_ONLY, allowModeOverride } },
    });
    await using gate = await proxyGateway(backend.address, extProc(true));
    expect(await send(gate.url, { method: 'POST', body: 'abc' })).toMatchObject({ text: 'POST / changed' });
    expect(service.calls[0]?.received.map(({ request }) => request)).toEqual([
      'request_headers',
      'request_body',
    ]);
    await using strict = await proxyGateway(backend.address, extProc(false));
    expect(await send(strict.url, { method: 'POST', body: 'abc' })).toMatchObject({ text: 'POST / abc' });
  });

  test('extProc sends values of expressions, and expressions read those of the service', async () => {
    await using backend = await upstream();
    await using service = await processor((message, call) => {
      const name: string = message.request;
      call.answer({ ...part(name), dynamic_metadata: toStruct({ user: { name: 'ann' }, from: name }) });
    });
    await using gate = await proxyGateway(backend.address, {
      extProc: {
        host: service.address,
        metadataContext: {
          'a.b': { path: 'request.path', missing: 'request.headers["no"]' },
          'agentgateway.dev.grpc_initial_metadata': { 'x-tenant': '"t1"', 'bad key': '"a"' },
        },
        requestAttributes: { method: 'request.method' },
        responseAttributes: { code: 'response.code' },
        processingOptions: HEADERS_ONLY,
      },
      transformations: {
        request: { set: { 'x-user': 'extproc.user.name' } },
        response: { set: { 'x-from': 'extproc.from' } },
      },
    });
    const reply = await send(`${gate.url}/p`);
    expect(reply.headers['x-from']).toBe('response_headers');
    expect(backend.received[0]?.headers).toMatchObject({ 'x-user': 'ann' });
    const [call] = service.calls;
    const [first, second] = call?.received ?? [];
    expect(call?.metadata).toMatchObject({ 'x-tenant': 't1' });
    expect(Object.keys(first.metadata_context.filter_metadata)).toEqual(['a.b']);
    expect(first.metadata_context.filter_metadata['a.b'].fields).toMatchObject({
      path: { stringValue: '/p' },
    });
    const attributes = 'envoy.filters.http.ext_proc';
    expect(first.attributes[attributes].fields).toMatchObject({ method: { stringValue: 'GET' } });
    expect(second.attributes[attributes].fields).toMatchObject({ code: { numberValue: 200 } });
  });

  test('extProc of a gateway runs before routing, and sees responses after that of the route', async () => {
    await using backend = await upstream();
    const options = { requestBodyMode: 'none', responseBodyMode: 'buffered' };
    const whole = (change: (text: string) => string, set: Record<string, string> = {}) =>
      processor((message, call) => {
        const name: string = message.request;
        if (name === 'response_body')
          call.answer(
            part(name, { body_mutation: { body: Buffer.from(change(message[name].body.toString())) } }),
          );
        else call.answer(part(name, name === 'request_headers' ? { header_mutation: mutation(set) } : {}));
      });
    await using first = await whole((text) => `<${text}>`, { ':path': '/routed' });
    await using second = await whole((text) => text.toUpperCase());
    const policy = (host: string): object => ({ extProc: { host, processingOptions: options } });
    const route = {
      matches: [{ path: { exact: '/routed' } }],
      policies: policy(second.address),
      backends: [{ host: backend.address }],
    };
    const config = JSON.stringify({
      gateways: { default: { port: 0, ...policy(first.address), routes: [route] } },
    });
    await using gate = await gateway(config);
    expect(await send(`${gate.url}/other`)).toMatchObject({ text: '<GET /ROUTED >' });
  });

  test('extProc is not asked about replies of the gateway itself', async () => {
    await using service = await processor(echo());
    await using gate = await gateway(
      routesConfig([
        { policies: { extProc: { host: service.address }, directResponse: { status: 418, body: 'tea' } } },
      ]),
    );
    expect(await send(gate.url)).toMatchObject({ status: 418, text: 'tea' });
    await until(() => service.open === 0);
    expect(service.calls[0]?.received.map(({ request }) => request)).toEqual(['request_headers']);
  });
});
