import { describe, expect, test } from 'vitest';
import { AUTHORITY } from '../../kit/certificates.ts';
import { gateway } from '../../kit/gateway.ts';
import { routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { httpUpstream } from '../../kit/upstream.ts';

const through = (dynamic: object, policies: object = {}, ofBackend: object = {}) =>
  gateway(routesConfig([{ policies, backends: [{ dynamic, policies: ofBackend }] }]));

describe('dynamic backends', () => {
  test('a request is sent to the server that it names', async () => {
    await using one = await httpUpstream((_, response) => response.end('one'));
    await using two = await httpUpstream((_, response) => response.end('two'));
    await using gate = await through({});
    const ask = (host: string) => send(`${gate.url}/a?b=1`, { headers: { host } });
    expect((await ask(one.address)).text).toBe('one');
    expect((await ask(two.address)).text).toBe('two');
    expect((await ask(one.address)).text).toBe('one');
    expect(one.received[0]).toMatchObject({ target: '/a?b=1', headers: { host: one.address } });
    expect(one.received[0]?.headers['via']).toMatch(/^1\.1 agctl-/);
    expect(one.connections).toBe(1);
  });

  test('an expression computes the server instead, also from headers', async () => {
    await using one = await httpUpstream((_, response) => response.end('one'));
    const target = '"127.0.0.1:" + request.headers["x-port"]';
    await using gate = await through({ target });
    const ask = (port: string) => send(gate.url, { headers: { 'x-port': port } });
    expect((await ask(String(one.port))).text).toBe('one');
    for (const port of ['', '1/../x', '1@evil.example:80', 'x']) expect((await ask(port)).status).toBe(500);
    expect((await send(gate.url)).status).toBe(500);
    expect(await gate.accessLine(6)).toMatchObject({ 'http.status': '500' });
    expect(one.received).toHaveLength(1);
  });

  test('backendTLS applies to the server that a request names', async () => {
    await using secured = await httpUpstream(undefined, { certificate: 'good' });
    await using gate = await through({}, {}, { backendTLS: { root: AUTHORITY, hostname: 'localhost' } });
    expect(await send(gate.url, { headers: { host: secured.address } })).toMatchObject({ status: 200 });
  });

  test('a rule restricts the servers', async () => {
    await using upstream = await httpUpstream();
    const rules = ['request.host == "allowed.example"'];
    await using gate = await through({}, { authorization: { rules } });
    expect((await send(gate.url, { headers: { host: upstream.address } })).status).toBe(403);
    expect(upstream.received).toHaveLength(0);
  });

  test('a request that comes back to the gateway is refused', async () => {
    await using gate = await through({});
    expect((await send(gate.url, { headers: { host: `127.0.0.1:${gate.port}` } })).status).toBe(500);
    await gate.accessLine(2);
    expect(gate.accessLog).toHaveLength(2);
  });

  test('the admin server cannot be reached through one, whatever headers are removed', async () => {
    const policies = { requestHeaderModifier: { remove: ['via', 'x-removed'] } };
    const routes = [{ policies, backends: [{ dynamic: {} }] }];
    await using gate = await gateway(routesConfig(routes), { admin: true });
    const { host } = new URL(gate.admin);
    for (const path of ['/config_dump', '/api/keys', '/ui', '/'])
      expect(await send(`${gate.url}${path}`, { headers: { host, via: '1.1 other' } })).toMatchObject({
        status: 403,
        text: expect.stringContaining('the admin server answers no request that a gateway has forwarded'),
      });
    expect((await send(`${gate.admin}/config_dump`)).status).toBe(200);
    expect((await send(`${gate.admin}/config_dump`, { headers: { via: '1.1 proxy' } })).status).toBe(200);
  });

  test('a repeated call is not taken for one that comes back', async () => {
    const statuses = [503, 200];
    await using upstream = await httpUpstream((_, response) => {
      response.statusCode = statuses.shift() ?? 500;
      response.end();
    });
    await using gate = await through({}, { retry: { attempts: 1, codes: [503] } });
    expect((await send(gate.url, { headers: { host: upstream.address } })).status).toBe(200);
  });

  test('anyone who reaches the port can make it call any host, of which validation warns', async () => {
    await using gate = await through({});
    const warned = gate.live.served.diagnostics.map(({ message }) => message);
    expect(warned.join()).toContain('can make it call any host');
  });
});
