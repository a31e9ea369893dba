import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { gateway } from '../../kit/gateway.ts';
import { answeringGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { type HttpUpstream, httpUpstream } from '../../kit/upstream.ts';

const status = async (url: string, path: string, method = 'GET') =>
  (await send(`${url}${path}`, { method })).status;

describe('directResponse with conditions', () => {
  const directResponse = {
    conditional: [
      { condition: 'request.path == "/teapot"', status: 418, body: 'short' },
      { condition: 'request.headers["x-missing"] == "x"', status: 500 },
      { status: 200, body: 'rest' },
    ],
  };

  test('the first entry whose condition is true applies, and a condition that fails is not true', async () => {
    await using server = await answeringGateway({ directResponse });
    const [teapot, rest] = await Promise.all(['/teapot', '/x'].map((path) => send(`${server.url}${path}`)));
    expect([teapot?.status, teapot?.text]).toEqual([418, 'short']);
    expect([rest?.status, rest?.text]).toEqual([200, 'rest']);
  });

  test('without an entry that always applies, the other requests go to the backend', async () => {
    await using upstream = await httpUpstream();
    const route = {
      policies: { directResponse: { conditional: directResponse.conditional.slice(0, 1) } },
      backends: [{ host: upstream.address }],
    };
    await using server = await gateway(
      JSON.stringify({ gateways: { default: { port: 0, routes: [route] } } }),
    );
    expect([await status(server.url, '/teapot'), await status(server.url, '/x')]).toEqual([418, 200]);
    expect(upstream.received).toHaveLength(1);
  });

  test('a route whose only answer has conditions answers other requests with 500 if it has no backend', async () => {
    const conditional = directResponse.conditional.slice(0, 1);
    await using server = await answeringGateway({ directResponse: { conditional } });
    expect([await status(server.url, '/teapot'), await status(server.url, '/x')]).toEqual([418, 500]);
  });

  test('the entry without a condition must be the last', async () => {
    const conditional = [{ status: 204 }, { condition: 'true', status: 200 }];
    await expect(answeringGateway({ directResponse: { conditional } })).rejects.toThrow(
      'gateways.default.routes.0.policies.directResponse.conditional.0: an entry without `condition` must be the last one',
    );
  });

  test('mistakes inside an entry are reported at their place', async () => {
    const refused = (entry: object) =>
      expect(answeringGateway({ directResponse: { conditional: [entry] } })).rejects;
    await refused({ statuss: 200 }).toThrow('conditional.0.statuss');
    await refused({ condition: 'reqest.path == "/"' }).toThrow('conditional.0.condition');
    await refused({ condition: '"text"' }).toThrow(
      'conditional.0.condition: the expression returns a string',
    );
    await refused({ bodyExpression: 'nothing(' }).toThrow('conditional.0.bodyExpression');
  });
});

test('each entry of localRateLimit has its own bucket', async () => {
  const limit = { tokensPerFill: 1, fillInterval: '1h' };
  const conditional = [
    { condition: 'request.method == "POST"', maxTokens: 1, ...limit },
    { maxTokens: 2, ...limit },
  ];
  await using server = await answeringGateway({ localRateLimit: { conditional } });
  const all = ['POST', 'POST', 'GET', 'GET', 'GET'];
  const statuses = [];
  for (const method of all) statuses.push(await status(server.url, '/', method));
  expect(statuses).toEqual([200, 429, 200, 200, 429]);
});

test('a mistake in an entry of localRateLimit is reported without an index that the file does not have', async () => {
  const entry = { maxTokens: 1, fillInterval: '1h', key: 'sorce.address' };
  await expect(answeringGateway({ localRateLimit: { conditional: [entry] } })).rejects.toThrow(
    'localRateLimit.conditional.0.key',
  );
});

describe('extAuthz with conditions', () => {
  let strict: HttpUpstream;
  let standard: HttpUpstream;
  beforeAll(async () => {
    strict = await httpUpstream((_, response) => response.writeHead(403).end());
    standard = await httpUpstream();
  });
  afterAll(async () => {
    await strict.close();
    await standard.close();
  });

  test('requests ask the service of the entry that applies', async () => {
    const conditional = [
      { condition: 'request.path.startsWith("/admin")', host: strict.address, protocol: { http: {} } },
      { host: standard.address, protocol: { http: {} } },
    ];
    await using server = await answeringGateway({ extAuthz: { conditional } });
    expect(await status(server.url, '/admin/x')).toBe(403);
    expect(await status(server.url, '/x')).toBe(200);
    expect([strict.received.length, standard.received.length]).toEqual([1, 1]);
  });

  test('the policies of a backend have no form with conditions', async () => {
    const extAuthz = { conditional: [{ host: standard.address }] };
    const routes = [{ backends: [{ host: standard.address, policies: { extAuthz } }] }];
    const config = { gateways: { default: { port: 0, routes } } };
    await expect(gateway(JSON.stringify(config))).rejects.toThrow('policies.extAuthz.conditional');
  });
});

test('transformations with conditions change the requests and responses that they apply to', async () => {
  const transformations = {
    conditional: [{ condition: 'request.path == "/a"', response: { set: { 'x-a': '"yes"' } } }],
  };
  await using server = await answeringGateway({ transformations });
  const [a, b] = await Promise.all(['/a', '/b'].map((path) => send(`${server.url}${path}`)));
  expect([a?.headers['x-a'], b?.headers['x-a']]).toEqual(['yes', undefined]);
});

test('remoteRateLimit with conditions asks its service only if one is true', async () => {
  const descriptors = [{ entries: [{ key: 'k', value: '"v"' }], type: 'requests' }];
  const service = { host: 'localhost:1', domain: 'd', descriptors };
  const conditional = [{ condition: 'request.path == "/never"', ...service }];
  await using server = await answeringGateway({ remoteRateLimit: { conditional } });
  // Nothing listens there.
  expect(await status(server.url, '/x')).toBe(200);
  expect(await status(server.url, '/never')).toBe(500);
});
