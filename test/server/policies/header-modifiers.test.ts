import { describe, expect, test } from 'vitest';
import { gateway } from '../../kit/gateway.ts';
import { answeringGateway, proxyGateway, routesConfig } from '../../kit/routes.ts';
import { send, valuesOf } from '../../kit/send.ts';
import { httpUpstream } from '../../kit/upstream.ts';

const CHANGES = {
  set: { 'X-Set': 'new', 'x-kept-case': 'Value' },
  add: { 'x-add': 'second', 'X-Fresh': 'f' },
  remove: ['X-Gone', 'x-fresh'],
};
const HEADERS = { 'x-set': ['old', 'older'], 'x-add': 'first', 'x-gone': ['a', 'b'], 'x-other': 'o' };

function expectChanged(headers: { rawHeaders: readonly string[] }): void {
  const values = Object.fromEntries(
    ['x-set', 'x-kept-case', 'x-add', 'x-gone', 'x-fresh', 'x-other'].map((name) => [
      name,
      valuesOf(headers, name),
    ]),
  );
  expect(values).toEqual({
    'x-set': ['new'],
    'x-kept-case': ['Value'],
    'x-add': ['first', 'second'],
    'x-gone': [],
    // Removal is applied last, after additions.
    'x-fresh': [],
    'x-other': ['o'],
  });
}

describe('requestHeaderModifier', () => {
  test('requestHeaderModifier sets, adds and removes headers that the backend receives', async () => {
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(backend.address, { requestHeaderModifier: CHANGES });
    await send(gate.url, { headers: HEADERS });
    expectChanged(backend.received[0] ?? { rawHeaders: [] });
  });

  test("requestHeaderModifier runs after authorization, which reads the client's headers", async () => {
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(backend.address, {
      authorization: { rules: ['request.headers["x-set"] == "old"'] },
      requestHeaderModifier: { set: { 'x-set': 'new' } },
    });
    expect((await send(gate.url, { headers: { 'x-set': 'old' } })).status).toBe(200);
    expect(backend.received[0]?.headers).toMatchObject({ 'x-set': 'new' });
    expect((await send(gate.url, { headers: { 'x-set': 'new' } })).status).toBe(403);
  });
});

describe('responseHeaderModifier', () => {
  test('responseHeaderModifier sets, adds and removes headers that the client receives', async () => {
    await using backend = await httpUpstream((_, response) => response.writeHead(200, HEADERS).end());
    await using gate = await proxyGateway(backend.address, { responseHeaderModifier: CHANGES });
    expectChanged(await send(gate.url));
  });

  test('responseHeaderModifier applies to rejections and backend failures', async () => {
    const policies = (rule: string) => ({
      responseHeaderModifier: { set: { 'x-frame-options': 'DENY' } },
      authorization: { rules: [rule] },
    });
    const route = (path: string, rule: string) => ({
      name: path.slice(1),
      matches: [{ path: { exact: path } }],
      policies: policies(rule),
      backends: [{ host: '127.0.0.1:9' }],
    });
    await using gate = await gateway(routesConfig([route('/refused', 'false'), route('/failed', 'true')]));
    for (const [path, status] of [
      ['/refused', 403],
      ['/failed', 503],
    ]) {
      const reply = await send(`${gate.url}${path}`);
      expect(reply.status).toBe(status);
      expect(reply.headers['x-frame-options']).toBe('DENY');
    }
  });

  test('responseHeaderModifier can remove headers that another policy added', async () => {
    await using gate = await answeringGateway({
      responseHeaderModifier: { remove: ['x-ratelimit-limit', 'X-RateLimit-Remaining'] },
      localRateLimit: [{ maxTokens: 1, fillInterval: '1h' }],
    });
    const { headers } = await send(gate.url);
    expect(headers).not.toHaveProperty('x-ratelimit-limit');
    expect(headers).not.toHaveProperty('x-ratelimit-remaining');
    expect(headers).toHaveProperty('x-ratelimit-reset');
  });
});

test.each([
  [{ set: { 'x a': '1' } }],
  [{ set: { '': '1' } }],
  [{ add: { 'x-a': 'a\r\nx-b: 1' } }],
  [{ add: { 'x-a': '\u0000' } }],
  [{ remove: ['a:b'] }],
  [{ replace: { 'x-a': '1' } }],
])('header modifiers reject the configuration %j', async (config) => {
  for (const key of ['requestHeaderModifier', 'responseHeaderModifier'])
    await expect(answeringGateway({ [key]: config })).rejects.toThrow(key);
});
