import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { type McpSession, post, toolCall } from '../../../../kit/mcp.ts';
import { apiGateway, openApi } from '../../../../kit/openapi.ts';
import { until } from '../../../../kit/until.ts';
import type { Answer } from '../../../../kit/upstream.ts';

const param = (name: string, place: string, rest: object = {}) => ({ name, in: place, schema: {}, ...rest });
const documentOf = (path: string, operation: object, method = 'get', rest: object = {}) =>
  openApi({ [path]: { [method]: { operationId: 'op', ...operation } } }, rest);

/** Calls the only operation with arguments as JSON text. */
const callText = ({ url, id }: McpSession, args: string) =>
  post(url, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"op","arguments":${args}}}`, {
    'mcp-session-id': id,
  });

/** Calls the only operation with these arguments; returns the result and the request target of the API, if it was called. */
async function called(path: string, parameters: object[], args: object) {
  await using shop = await apiGateway(documentOf(path, { parameters }));
  const result = await shop.call('op', args);
  return { result, target: shop.api.received[0]?.target, received: shop.api.received[0] };
}

describe('parameters of an OpenAPI target', () => {
  test.each([
    ['a string', 'a b/c?d#e%2F', 'a%20b%2Fc%3Fd%23e%252F'],
    ['a number over 2^53', 9007199254740993n, '9007199254740993'],
    ['a list', ['a,b', 'c'], 'a%2Cb,c'],
    ['an object', { k: 'v', 'a/b': 1 }, 'k,v,a%2Fb,1'],
    ['an exploded object', { k: 'v', l: '=' }, 'k=v,l=%3D', { explode: true }],
    ['text outside ASCII', 'ü', '%C3%BC'],
    ['a parameter with content', { a: 1 }, '%7B%22a%22%3A1%7D', { content: { 'application/json': {} } }],
  ])('%s in the path is encoded', async (_, value, expected, rest: object = {}) => {
    await using shop = await apiGateway(documentOf('/x/{v}/y', { parameters: [param('v', 'path', rest)] }));
    const text = typeof value === 'bigint' ? String(value) : JSON.stringify(value);
    await callText(shop.session, `{"path":{"v":${text}}}`);
    expect(shop.api.received[0]?.target).toBe(`/x/${expected}/y`);
  });

  test.each([
    ['..'],
    ['.'],
    ['../admin'],
    ['a/../../admin'],
    ['..;x'],
    ['..\\admin'],
    ['\u0000'],
    ['a\nb'],
    [''],
    [[]],
    [{}],
    [null],
    [{ a: { b: 1 } }],
    [['..']],
  ])('the path argument %j is refused, and the API is not called', async (value) => {
    const { result, target } = await called('/files/{name}', [param('name', 'path')], {
      path: { name: value },
    });
    expect(result).toMatchObject({ isError: true, content: [{ type: 'text' }] });
    expect(target).toBeUndefined();
  });

  test('two path parameters cannot form a dot segment together', async () => {
    const { result, target } = await called('/{a}{b}/x', [], { path: { a: '.', b: '.' } });
    expect(result.isError).toBe(true);
    expect(target).toBeUndefined();
  });

  test.each([
    ['form, exploded by default', {}, ['a', 'b&c=d'], 'q=a&q=b%26c%3Dd'],
    ['form, not exploded', { explode: false }, ['a,', 'b'], 'q=a%2C,b'],
    ['form with an object', {}, { x: '1&admin=true', y: true }, 'x=1%26admin%3Dtrue&y=true'],
    ['form with an object, not exploded', { explode: false }, { x: 1 }, 'q=x,1'],
    ['spaceDelimited', { style: 'spaceDelimited', explode: false }, ['a', 'b'], 'q=a%20b'],
    ['pipeDelimited', { style: 'pipeDelimited', explode: false }, ['a', 'b|c'], 'q=a%7Cb%7Cc'],
    [
      'deepObject',
      { style: 'deepObject', explode: true },
      { x: 'a]=b', y: 2 },
      'q%5Bx%5D=a%5D%3Db&q%5By%5D=2',
    ],
    ['content', { content: { 'application/json': {} } }, { a: [1] }, 'q=%7B%22a%22%3A%5B1%5D%7D'],
    ['null', {}, null, ''],
    ['an empty list', { explode: false }, [], ''],
    ['a hash and a line break', {}, '#\r\n', 'q=%23%0D%0A'],
  ])('a query parameter in style %s is encoded', async (_, rest, value, expected) => {
    const { target } = await called('/x', [param('q', 'query', rest)], { query: { q: value } });
    expect(target).toBe(expected === '' ? '/x' : `/x?${expected}`);
  });

  test('members of an exploded query object cannot set another parameter of the query', async () => {
    const { result, target } = await called('/x', [param('filter', 'query'), param('admin', 'query')], {
      query: { filter: { admin: 'true' } },
    });
    expect(result.content[0].text).toContain('query.filter.admin');
    expect(target).toBeUndefined();
  });

  test.each([
    ['a parameter', { query: { other: 1 } }, '"query.other"'],
    ['a group', { form: { a: 1 } }, '"form"'],
    ['a body', { body: {} }, '"body"'],
    ['__proto__', JSON.parse('{"query":{"__proto__":{"q":1}}}'), '"query.__proto__"'],
    ['a list as a group', { query: ['q'] }, 'query must be an object'],
  ])('%s that the operation does not have is refused', async (_, args, message) => {
    const { result, target } = await called('/x', [param('q', 'query')], args);
    expect(result.isError).toBe(true);
    expect(result.content[0].text).toContain(message);
    expect(target).toBeUndefined();
  });

  test('a missing required parameter or body is named', async () => {
    await using shop = await apiGateway(
      documentOf(
        '/x',
        {
          parameters: [param('q', 'query', { required: true })],
          requestBody: { required: true, content: { 'application/json': {} } },
        },
        'post',
      ),
    );
    expect((await shop.call('op', {})).content[0].text).toBe('query.q is required');
    expect((await shop.call('op', { query: { q: 1 } })).content[0].text).toBe('body is required');
  });

  test('header parameters are sent, and line breaks in them are refused', async () => {
    const parameters = [param('X-Trace', 'header'), param('X-List', 'header')];
    const sent = await called('/x', parameters, { header: { 'X-Trace': 'a b', 'X-List': [1, 2] } });
    expect(sent.received?.headers).toMatchObject({ 'x-trace': 'a b', 'x-list': '1,2' });
    for (const value of ['a\r\nx-admin: 1', 'a\nb', '\u0000', '€']) {
      const { result, target } = await called('/x', parameters, { header: { 'X-Trace': value } });
      expect(result.isError).toBe(true);
      expect(target).toBeUndefined();
    }
  });

  test('neither the document nor a caller can set headers about the connection, the length or the credentials', async () => {
    const names = [
      'Host',
      'Content-Length',
      'Transfer-Encoding',
      'Connection',
      'Upgrade',
      'TE',
      'Cookie',
      'Authorization',
      'Accept',
      'Content-Type',
      'bad name',
      'a\r\nb',
    ];
    await using shop = await apiGateway(
      documentOf('/x', { parameters: names.map((name) => param(name, 'header')) }),
    );
    const [found] = await shop.tools();
    expect(found.inputSchema.properties).toEqual({});
    const result = await shop.call('op', { header: { Host: 'evil.example' } });
    expect(result.isError).toBe(true);
    expect(shop.api.received).toEqual([]);
  });
});

describe('requests of an OpenAPI target', () => {
  test('the body is forwarded as the client wrote it, with the media type of the document', async () => {
    const requestBody = { content: { 'text/plain': {}, 'application/vnd.api+json': {} } };
    await using shop = await apiGateway(documentOf('/x', { requestBody }, 'post'));
    await callText(shop.session, '{"body":{"n":9007199254740993,"f":1.0}}');
    expect(shop.api.received[0]).toMatchObject({ method: 'POST', body: '{"n":9007199254740993,"f":1.0}' });
    expect(shop.api.received[0]?.headers['content-type']).toBe('application/vnd.api+json');
  });

  test('the API gets the end-to-end headers of the client, and configured headers that no caller can replace', async () => {
    await using shop = await apiGateway(
      documentOf('/x', { parameters: [param('X-Api-Key', 'header'), param('X-Own', 'header')] }),
      {
        target: { headers: { 'x-api-key': 'secret-key-1', authorization: 'Bearer api' } },
        headers: {
          authorization: 'Bearer client',
          'x-api-key': 'guess',
          'x-own': 'client',
          'x-more': 'yes',
          cookie: 'a=b',
        },
      },
    );
    const refused = await shop.call('op', { header: { 'X-Api-Key': 'guess' } });
    expect(refused.isError).toBe(true);
    await shop.call('op', { header: { 'X-Own': 'argument' } });
    const { rawHeaders, headers } = shop.api.received[0] ?? { rawHeaders: [], headers: {} };
    expect(headers).toMatchObject({
      host: shop.api.address,
      'x-api-key': 'secret-key-1',
      authorization: 'Bearer api',
      'x-own': 'argument',
      'x-more': 'yes',
    });
    expect(headers).not.toHaveProperty('cookie');
    expect(headers).not.toHaveProperty('mcp-session-id');
    const names = rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase());
    expect(new Set(names).size).toBe(names.length);
  });

  test.each([
    [
      'the first server of the document',
      {},
      [{ url: 'https://other.example/api/{v}/', variables: { v: { default: 'v3' } } }],
      '/api/v3/x',
    ],
    ['a relative server', {}, [{ url: '/api' }, { url: '/b' }], '/api/x'],
    ['no server', {}, undefined, '/x'],
    ['a dot segment in a server', {}, [{ url: '/a/../b' }], '/b/x'],
  ])('the base path is that of %s', async (_, target, servers, expected) => {
    await using shop = await apiGateway(documentOf('/x', {}, 'get', { servers }), { target });
    await shop.call('op');
    expect(shop.api.received[0]?.target).toBe(expected);
    expect(shop.api.received[0]?.headers['host']).toBe(shop.api.address);
  });

  test('a configured path replaces the base path of the document, and host and port may be separate', async () => {
    await using first = await apiGateway(documentOf('/x', {}, 'get', { servers: [{ url: '/api' }] }));
    await using shop = await apiGateway(documentOf('/x', {}, 'get', { servers: [{ url: '/api' }] }), {
      target: { host: '127.0.0.1', port: first.api.port, path: '/v9/' },
    });
    await shop.call('op');
    expect(first.api.received[0]?.target).toBe('/v9/x');
  });
});

describe('responses to an OpenAPI target', () => {
  const answering = (answer: Answer) => apiGateway(documentOf('/x', {}), { answer });

  test('a JSON object becomes text and structured content without a change of its text', async () => {
    const body = '{"id": 9007199254740993, "f": 1.0}';
    await using shop = await answering((_, response) => {
      response.setHeader('content-type', 'application/json; charset=utf-8');
      response.end(body);
    });
    const { text } = await shop.session.send(toolCall(1, 'op'));
    expect(text).toContain(`"structuredContent":${body}`);
    expect(text).toContain(JSON.stringify(body));
  });

  test.each([
    ['a JSON list', 'application/json', '[1]', '[1]'],
    ['invalid JSON', 'application/json', '{"a":', '{"a":'],
    [
      'deeply nested JSON',
      'application/json',
      `{"a":${'['.repeat(5000)}${']'.repeat(5000)}}`,
      `{"a":${'['.repeat(5000)}${']'.repeat(5000)}}`,
    ],
    ['plain text', 'text/plain', 'hello', 'hello'],
    ['an empty body', 'application/json', '', 'HTTP 200 OK'],
  ])('%s becomes text only', async (_, type, body, expected) => {
    await using shop = await answering((_request, response) => {
      response.setHeader('content-type', type);
      response.end(body);
    });
    expect(await shop.call('op')).toEqual({ content: [{ type: 'text', text: expected }] });
  });

  test('text in another charset is decoded', async () => {
    await using shop = await answering((_, response) => {
      response.setHeader('content-type', 'text/plain; charset=iso-8859-1');
      response.end(Buffer.from([0xfc]));
    });
    expect((await shop.call('op')).content[0].text).toBe('ü');
  });

  test('a failed status becomes an error result with the status and a bounded part of the body', async () => {
    await using shop = await answering((_, response) => {
      response.writeHead(422, { 'content-type': 'application/problem+json' });
      response.end(JSON.stringify({ detail: 'x'.repeat(20_000) }));
    });
    const { isError, content } = await shop.call('op');
    expect(isError).toBe(true);
    expect(content[0].text).toMatch(/^HTTP 422 Unprocessable Entity: \{"detail":"xxx/);
    expect(content[0].text.length).toBeLessThan(9_000);
  });

  test('a redirect is not followed', async () => {
    await using shop = await answering((_, response) => {
      response.writeHead(302, { location: 'http://169.254.169.254/' }).end();
    });
    const { isError, content } = await shop.call('op');
    expect(isError).toBe(true);
    expect(content[0].text).toContain('redirects are not followed');
    expect(shop.api.received).toHaveLength(1);
  });

  test.each([
    ['an image', { 'content-type': 'image/png' }, 'image/png'],
    ['a compressed response', { 'content-type': 'text/plain', 'content-encoding': 'gzip' }, 'gzip'],
  ])('%s is refused with its type', async (_, headers, named) => {
    await using shop = await answering((_request, response) => {
      response.writeHead(200, headers).end(Buffer.alloc(100));
    });
    const { isError, content } = await shop.call('op');
    expect(isError).toBe(true);
    expect(content[0].text).toContain(named);
  });

  test('a response over the limit is refused, and the API is not read to the end', async () => {
    let closed = false;
    await using shop = await answering((_, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' });
      response.on('close', () => {
        closed = true;
      });
      const more = (): void => {
        if (!response.destroyed && response.write('x'.repeat(65_536))) setImmediate(more);
        else response.once('drain', more);
      };
      more();
    });
    const { isError, content } = await shop.call('op');
    expect(isError).toBe(true);
    expect(content[0].text).toContain('larger than 2097152 bytes');
    await until(() => closed);
  });

  test('a cancelled call aborts the request at the API', async () => {
    let closed = false;
    await using shop = await answering((_, response) => {
      response.on('close', () => {
        closed = true;
      });
    });
    const call = shop.session.send(toolCall(5, 'op'));
    await until(() => shop.api.received.length === 1);
    await shop.session.send({ method: 'notifications/cancelled', params: { requestId: 5 } });
    await until(() => closed);
    await call;
  });

  test('backendRequestTimeout ends a call to an API that sends no response headers', async () => {
    let closed = false;
    await using shop = await apiGateway(documentOf('/x', {}), {
      answer: (_, response) => {
        response.on('close', () => {
          closed = true;
        });
      },
      policies: { timeout: { backendRequestTimeout: '100ms' } },
    });
    expect(await shop.call('op')).toEqual({
      content: [{ type: 'text', text: 'the API did not answer within 0.1 s' }],
      isError: true,
    });
    await until(() => closed);
  });

  test('backendRequestTimeout does not limit the response body of an API', async () => {
    const begun = Promise.withResolvers<ServerResponse>();
    await using shop = await apiGateway(documentOf('/x', {}), {
      answer: (_, response) => {
        response.writeHead(200, { 'content-type': 'text/plain' }).write('slow');
        setTimeout(() => begun.resolve(response), 3_500);
      },
      policies: { timeout: { backendRequestTimeout: '3s' } },
    });
    const call = shop.call('op');
    (await begun.promise).end('ly');
    expect(await call).toMatchObject({ content: [{ text: 'slowly' }] });
  });

  test('an API that cannot be reached is an error result with the reason, and the log has its address', async () => {
    await using shop = await answering(() => undefined);
    await shop.api.close();
    expect(await shop.call('op')).toEqual({
      content: [{ type: 'text', text: 'the call to the API failed: connection refused' }],
      isError: true,
    });
    const line = shop.gate.log.find((each) => each.includes('a call to the API of a target failed'));
    expect(line).toContain(`target="shop" problem="${shop.api.address}: connection refused"`);
  });

  test('an unknown tool is an error of the caller', async () => {
    await using shop = await answering(() => undefined);
    expect(await shop.call('constructor')).toMatchObject({
      code: -32602,
      message: 'Unknown tool: constructor',
    });
  });
});
