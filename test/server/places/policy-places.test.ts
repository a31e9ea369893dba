import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { everythingStdio } from '../../kit/everything-target.ts';
import { gateway } from '../../kit/gateway.ts';
import { openSession } from '../../kit/mcp.ts';
import { send } from '../../kit/send.ts';
import { type HttpUpstream, httpUpstream } from '../../kit/upstream.ts';

let upstream: HttpUpstream;
beforeAll(async () => {
  upstream = await httpUpstream();
});
afterAll(() => upstream[Symbol.asyncDispose]());

const host = (): string => upstream.address;

describe('policies of a gateway', () => {
  test('a policy of the gateway applies to every route, and its response phase to every response', async () => {
    const config = {
      gateways: {
        default: {
          port: 0,
          cors: { allowOrigins: ['https://app.example.com'], allowMethods: ['GET'] },
          authorization: { rules: [{ deny: 'request.path == "/denied"' }] },
          routes: [{ backends: [{ host: host() }] }],
        },
      },
    };
    await using server = await gateway(JSON.stringify(config));
    const headers = { origin: 'https://app.example.com' };
    const allowed = await send(`${server.url}/x`, { headers });
    expect([allowed.status, allowed.headers['access-control-allow-origin']]).toEqual([
      200,
      'https://app.example.com',
    ]);
    const denied = await send(`${server.url}/denied`, { headers });
    expect([denied.status, denied.headers['access-control-allow-origin']]).toEqual([
      403,
      'https://app.example.com',
    ]);
  });

  test('the body is buffered for a policy of the gateway that reads it, and still reaches the backend', async () => {
    const config = {
      gateways: {
        default: {
          port: 0,
          authorization: { rules: ['json(request.body).ok == true'] },
          routes: [{ backends: [{ host: host() }] }],
        },
      },
    };
    await using server = await gateway(JSON.stringify(config));
    const before = upstream.received.length;
    const refused = await send(server.url, { method: 'POST', body: '{"ok":false}' });
    const passed = await send(server.url, { method: 'POST', body: '{"ok":true}' });
    expect([refused.status, passed.status]).toEqual([403, 200]);
    expect(upstream.received.slice(before).map(({ body }) => body)).toEqual(['{"ok":true}']);
  });

  test('a route policy cannot be written at a gateway, and the message says where to write it', async () => {
    const config = { gateways: { default: { port: 0, timeout: { requestTimeout: '1s' } } } };
    await expect(gateway(JSON.stringify(config))).rejects.toThrow('gateways.default.timeout');
  });
});

describe('policies of a backend', () => {
  test('each backend of a route has its own policies', async () => {
    const backend = (weight: number, name: string) => ({
      weight,
      host: host(),
      policies: {
        requestHeaderModifier: { set: { 'x-backend': name } },
        responseHeaderModifier: { set: { 'x-from': name } },
        backendAuth: { key: `key-of-${name}` },
      },
    });
    const config = {
      gateways: { default: { port: 0 } },
      routes: [
        {
          policies: { requestHeaderModifier: { set: { 'x-route': 'yes', 'x-backend': 'route' } } },
          backends: [backend(1, 'one'), backend(0, 'none')],
        },
      ],
    };
    await using server = await gateway(JSON.stringify(config));
    const { headers } = await send(server.url, {});
    expect(headers['x-from']).toBe('one');
    expect(upstream.received.at(-1)?.headers).toMatchObject({
      'x-route': 'yes',
      'x-backend': 'one',
      authorization: 'Bearer key-of-one',
    });
  });

  test('a policy of the backend takes precedence over that of the route for the same credential', async () => {
    const config = {
      gateways: { default: { port: 0 } },
      routes: [
        {
          policies: { backendAuth: { key: 'of-the-route' } },
          backends: [{ host: host(), policies: { backendAuth: { key: 'of-the-backend' } } }],
        },
      ],
    };
    await using server = await gateway(JSON.stringify(config));
    await send(server.url, {});
    expect(upstream.received.at(-1)?.headers.authorization).toBe('Bearer of-the-backend');
  });

  test('rules of a backend are checked once it was picked', async () => {
    const config = {
      gateways: { default: { port: 0 } },
      routes: [
        { backends: [{ host: host(), policies: { authorization: { rules: ['request.path != "/no"'] } } }] },
      ],
    };
    await using server = await gateway(JSON.stringify(config));
    expect((await send(`${server.url}/no`, {})).status).toBe(403);
    expect((await send(`${server.url}/yes`, {})).status).toBe(200);
  });

  test('rules for items of the backend join those of the route: a deny rule of either counts', async () => {
    const rules = (...list: object[]) => ({ mcpAuthorization: { rules: list } });
    const config = {
      gateways: { default: { port: 0 } },
      routes: [
        {
          policies: rules({ deny: 'mcp.tool.name == "echo"' }),
          backends: [
            {
              mcp: { targets: [everythingStdio('everything', 'both').config] },
              policies: rules({ deny: 'mcp.tool.name == "add"' }),
            },
          ],
        },
      ],
    };
    await using server = await gateway(JSON.stringify(config));
    const session = await openSession(`${server.url}/mcp`);
    const { result } = await session.request('tools/list');
    const names = (result.tools as { name: string }[]).map(({ name }) => name);
    expect(names.length).toBeGreaterThan(0);
    expect(names).not.toContain('echo');
    expect(names).not.toContain('add');
  });
});
