import { describe, expect, test } from 'vitest';
import { gateway } from '../../kit/gateway.ts';
import { answeringGateway, routesConfig } from '../../kit/routes.ts';
import { type HttpReply, send } from '../../kit/send.ts';

async function answer(directResponse: object, options = {}): Promise<HttpReply> {
  await using gate = await answeringGateway({ directResponse });
  return await send(gate.url, options);
}

describe('directResponse', () => {
  test('directResponse answers without a backend, by default with 200 and an empty body', async () => {
    const reply = await answer({});
    expect(reply).toMatchObject({ status: 200, text: '' });
    expect(reply.headers['content-length']).toBe('0');
    expect(await answer({ status: 503, body: 'closed for Sunday \u2600' })).toMatchObject({
      status: 503,
      text: 'closed for Sunday \u2600',
      headers: { 'content-type': 'text/plain; charset=utf-8' },
    });
  });

  test('directResponse evaluates bodyExpression and serializes objects as JSON', async () => {
    const bodyExpression = '{"path": request.path, "n": 1, "list": [1.5, null]}';
    expect((await answer({ bodyExpression }, { target: '/a' })).text).toBe(
      '{"path":"/a","n":1,"list":[1.5,null]}',
    );
    expect((await answer({ bodyExpression: '"a" + "b"' })).text).toBe('ab');
    expect((await answer({ bodyExpression: 'b"bytes"' })).text).toBe('bytes');
  });

  test('directResponse sends a list of bytes, and bytes of an expression, as they are', async () => {
    const bytes = Buffer.from([0, 255, 128, 10]);
    for (const body of [{ body: [...bytes] }, { bodyExpression: 'b"\\x00\\xff\\x80\\n"' }]) {
      const reply = await answer(body);
      expect(reply.body.equals(bytes)).toBe(true);
      expect(reply.headers).toMatchObject({
        'content-type': 'application/octet-stream',
        'content-length': '4',
      });
    }
    expect((await answer({ body: [111, 107] })).text).toBe('ok');
    await expect(answer({ body: [256] })).rejects.toThrow('body');
  });

  test('directResponse evaluates header expressions and omits those that fail or give invalid values', async () => {
    const headers = {
      'content-type': '"application/json"',
      'x-count': '1 + 1',
      'x-missing': 'request.headers["x-not"]',
      'x-split': '"a\\r\\nx-evil: 1"',
      'x-wide': '"\u2600"',
      'x-echo': 'request.headers["x-in"]',
    };
    const reply = await answer({ body: '{}', headers }, { headers: { 'x-in': 'v' } });
    expect(reply.headers).toMatchObject({
      'content-type': 'application/json',
      'x-count': '2',
      'x-echo': 'v',
    });
    for (const name of ['x-missing', 'x-split', 'x-evil', 'x-wide'])
      expect(reply.headers).not.toHaveProperty(name);
  });

  test('directResponse answers 500 without a reason when its body expression fails', async () => {
    await using gate = await answeringGateway({
      directResponse: { bodyExpression: 'request.headers["x-secret"]' },
    });
    expect(await send(gate.url)).toMatchObject({ status: 500, text: 'internal error' });
    expect(await gate.accessLine(1)).toMatchObject({
      reason: 'Internal',
      'error.detail': 'directResponse.bodyExpression could not be evaluated',
    });
  });

  test('directResponse answers HEAD with the content-length of its body and no body', async () => {
    const reply = await answer({ body: 'four' }, { method: 'HEAD' });
    expect(reply).toMatchObject({ status: 200, text: '' });
    expect(reply.headers['content-length']).toBe('4');
  });

  test.each([204, 304])(
    'directResponse with status %i sends no body and keeps the connection open',
    async (status) => {
      await using gate = await answeringGateway({ directResponse: { status, body: 'not allowed here' } });
      for (let i = 0; i < 2; i += 1) expect(await send(gate.url)).toMatchObject({ status, text: '' });
    },
  );

  test('directResponse with status 204 sends no content-length', async () => {
    const { headers } = await answer({ status: 204, body: 'not allowed here' });
    expect(headers).not.toHaveProperty('content-length');
  });

  test('directResponse takes precedence over backends and is logged as the reason', async () => {
    const policies = { directResponse: { body: 'me' } };
    await using gate = await gateway(routesConfig([{ policies, backends: [{ host: '127.0.0.1:9' }] }]));
    expect((await send(gate.url)).text).toBe('me');
    expect(await gate.accessLine(1)).toMatchObject({ 'http.status': '200', reason: 'DirectResponse' });
  });
});

test.each([
  [{ status: 199 }, 'status'],
  [{ status: 600 }, 'status'],
  [{ body: 'a', bodyExpression: '"b"' }, 'mutually exclusive'],
  [{ headers: { 'x y': '1' } }, 'headers'],
])('directResponse rejects the configuration %j', async (config, words) => {
  await expect(answeringGateway({ directResponse: config })).rejects.toThrow(words);
});
