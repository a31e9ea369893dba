import { describe, expect, test } from 'vitest';
import { askPolicy } from '../../kit/authz.ts';
import { answeringGateway } from '../../kit/routes.ts';
import { send, valuesOf } from '../../kit/send.ts';
import { httpUpstream } from '../../kit/upstream.ts';

const DENIED = { status: 403, text: 'external authorization failed' };

describe('extAuthz request to the service', () => {
  test("extAuthz sends the client's path, query and method by default, without the body", async () => {
    await using service = await httpUpstream();
    await using gate = await answeringGateway(askPolicy(service.address));
    await send(gate.url, { method: 'POST', target: '/a/b?c=%20d', body: 'secret body' });
    expect(service.received).toMatchObject([{ method: 'POST', target: '/a/b?c=%20d', body: '' }]);
    expect(service.received[0]?.headers).toMatchObject({ host: service.address, 'content-length': '0' });
  });

  test('extAuthz sends only the authorization header or the headers in includeRequestHeaders', async () => {
    await using service = await httpUpstream();
    const headers = { authorization: 'Bearer t', cookie: 'a=1', 'x-a': ['1', '2'], 'x-b': 'b' };
    await using usual = await answeringGateway(askPolicy(service.address));
    await send(usual.url, { headers });
    expect(service.received[0]?.headers).toEqual({
      host: service.address,
      connection: 'keep-alive',
      authorization: 'Bearer t',
    });
    await using listed = await answeringGateway(
      askPolicy(service.address, {}, { includeRequestHeaders: ['X-A', 'cookie', 'x-missing'] }),
    );
    await send(listed.url, { headers });
    const { rawHeaders = [], headers: got } = service.received[1] ?? {};
    expect(valuesOf({ rawHeaders }, 'x-a')).toEqual(['1', '2']);
    expect(got).toMatchObject({ cookie: 'a=1' });
    expect(got).not.toHaveProperty('authorization');
    expect(got).not.toHaveProperty('x-b');
  });

  test('extAuthz.addRequestHeaders adds headers and omits one whose expression fails', async () => {
    await using service = await httpUpstream();
    const addRequestHeaders = {
      'x-method': 'request.method',
      'x-missing': 'request.headers["x-not-there"]',
      'x-number': '1 + 1',
      'x-split': '"a\\r\\nx-injected: 1"',
      ':authority': 'request.headers["x-tenant"] + ".authz.example"',
    };
    await using gate = await answeringGateway(askPolicy(service.address, { addRequestHeaders }));
    await send(gate.url, { headers: { 'x-tenant': 'acme' } });
    const { headers } = service.received[0] ?? {};
    expect(headers).toMatchObject({ 'x-method': 'GET', host: 'acme.authz.example' });
    for (const name of ['x-missing', 'x-number', 'x-split', 'x-injected'])
      expect(headers).not.toHaveProperty(name);
    await send(gate.url);
    expect(service.received[1]?.headers.host).toBe(service.address);
  });

  test('extAuthz.addRequestHeaders sets the method, and denies if it is none', async () => {
    await using service = await httpUpstream();
    const addRequestHeaders = { ':method': 'request.headers["x-verb"]' };
    // Whatever happens if the service cannot be asked: such a request is wrong itself.
    await using gate = await answeringGateway(
      askPolicy(service.address, { addRequestHeaders }, { failureMode: 'allow' }),
    );
    expect((await send(gate.url, { headers: { 'x-verb': 'PUT' } })).status).toBe(200);
    expect(service.received[0]?.method).toBe('PUT');
    for (const verb of ['CONNECT', 'get it', 'get'])
      expect((await send(gate.url, { headers: { 'x-verb': verb } })).status).toBe(403);
    expect(service.received).toHaveLength(1);
  });

  test.each([
    ['a space', 'a b.example'],
    ['a slash', 'a.example/x'],
    ['user information', 'u@a.example'],
    ['a comma and a second host', 'a.example, b.example:80:80'],
    ['a port that is no number', 'a.example:http'],
    ['letters outside ASCII', '\u00e4.example'],
    ['an empty label', 'a..example'],
  ])('extAuthz denies without a call when the `:authority` contains %s', async (_what, tenant) => {
    await using service = await httpUpstream();
    const addRequestHeaders = { ':authority': 'request.headers["x-tenant"]' };
    await using gate = await answeringGateway(
      askPolicy(service.address, { addRequestHeaders }, { failureMode: 'allow' }),
    );
    expect(await send(gate.url, { headers: { 'x-tenant': tenant } })).toMatchObject(DENIED);
    expect(service.received).toEqual([]);
    const line = await gate.accessLine(1);
    expect(line['error.detail']).toBe(
      'extAuthz.protocol.http.addRequestHeaders: `:authority` did not evaluate to a host',
    );
  });

  test.each([
    ['is empty', '""'],
    ['has a line break', '"a.example\\r\\nx-injected: 1"'],
    ['has a NUL', '"a\\u0000b"'],
    ['is a number', '42'],
    ['is a list', '["a.example"]'],
  ])('extAuthz denies without a call when the `:authority` %s', async (_how, authority) => {
    await using service = await httpUpstream();
    await using gate = await answeringGateway(
      askPolicy(service.address, { addRequestHeaders: { ':authority': authority } }),
    );
    expect(await send(gate.url)).toMatchObject(DENIED);
    expect(service.received).toEqual([]);
    expect((await gate.accessLine(1))['error.detail']).toContain('`:authority` did not evaluate to a host');
  });

  test.each([':path', ':other', 'host', 'connection', 'content-length', 'te'])(
    'extAuthz.addRequestHeaders rejects %s',
    async (name) => {
      const policy = askPolicy('127.0.0.1:1', { addRequestHeaders: { [name]: '"x"' } });
      await expect(answeringGateway(policy)).rejects.toThrow(
        /addRequestHeaders\.\S+: .* is not a valid name/,
      );
    },
  );

  test("extAuthz sends the client's Host header when includeRequestHeaders lists it", async () => {
    await using service = await httpUpstream();
    await using gate = await answeringGateway(
      askPolicy(service.address, {}, { includeRequestHeaders: ['host', 'content-length'] }),
    );
    const reply = await send(gate.url, { method: 'POST', body: 'x', headers: { host: 'client.example' } });
    expect(reply.status).toBe(200);
    const { rawHeaders = [] } = service.received[0] ?? {};
    expect(valuesOf({ rawHeaders }, 'host')).toEqual(['client.example']);
  });

  test.each([
    ['fails', 'request.headers["x-path"]', {}],
    ['is a number', '42', {}],
    ['has a space', 'request.headers["x-path"]', { 'x-path': '/a b' }],
    ['has a line break', '"/a\\r\\nX-Injected: 1"', {}],
    ['has a fragment', '"/a#b"', {}],
    ['is an absolute URL', 'request.headers["x-path"]', { 'x-path': 'http://evil.example/' }],
    ['is empty', '""', {}],
  ])('extAuthz denies without a call when the path expression %s', async (_how, path, headers) => {
    await using service = await httpUpstream();
    await using gate = await answeringGateway(askPolicy(service.address, { path }, { failureMode: 'allow' }));
    expect(await send(gate.url, { headers })).toMatchObject(DENIED);
    expect(service.received).toEqual([]);
    expect((await gate.accessLine(1))['error.detail']).toContain('path');
  });

  test('extAuthz sends a path with two leading slashes to the configured service', async () => {
    await using service = await httpUpstream();
    await using gate = await answeringGateway(askPolicy(service.address, { path: '"//evil.example/x"' }));
    expect((await send(gate.url)).status).toBe(200);
    expect(service.received).toMatchObject([
      { target: '//evil.example/x', headers: { host: service.address } },
    ]);
  });
});
