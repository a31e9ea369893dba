import { describe, expect, test } from 'vitest';
import { gateway } from '../../kit/gateway.ts';
import { send } from '../../kit/send.ts';

const answer = (body: string) => ({ policies: { directResponse: { status: 200, body } } });

/** Sends a request with this Host and returns the status and the body. */
async function ask(url: string, host: string, path = '/'): Promise<string> {
  const { status, text } = await send(`${url}${path}`, { headers: { host } });
  return `${status} ${text}`;
}

describe('listeners of one port', () => {
  const yaml = JSON.stringify({
    gateways: {
      web: {
        port: 0,
        listeners: [
          { name: 'exact', hostname: 'a.example.com' },
          { name: 'narrow', hostname: '*.sub.example.com' },
          { name: 'wide', hostname: '*.example.com' },
          { name: 'rest' },
        ],
      },
    },
    routes: [
      { gateways: 'web/exact', ...answer('exact') },
      { gateways: ['web/narrow'], ...answer('narrow') },
      { gateways: ['web/wide'], ...answer('wide') },
      { gateways: 'web/rest', ...answer('rest') },
      { gateways: 'web', name: 'all', matches: [{ path: { exact: '/all' } }], ...answer('all') },
    ],
  });

  test('a listener is selected by the most specific host name, and then by none', async () => {
    await using server = await gateway(yaml);
    const hosts = [
      'a.example.com',
      'A.EXAMPLE.COM:80',
      'b.example.com',
      'x.sub.example.com',
      'example.com',
      'other',
    ];
    const replies = await Promise.all(hosts.map((host) => ask(server.url, host)));
    expect(replies).toEqual(['200 exact', '200 exact', '200 wide', '200 narrow', '200 rest', '200 rest']);
  });

  test('a route that names only the gateway belongs to all of its listeners', async () => {
    await using server = await gateway(yaml);
    const replies = await Promise.all(
      ['a.example.com', 'b.example.com', 'other'].map((host) => ask(server.url, host, '/all')),
    );
    expect(replies).toEqual(['200 all', '200 all', '200 all']);
  });

  test('the access log names the selected listener', async () => {
    await using server = await gateway(yaml);
    await ask(server.url, 'a.example.com');
    expect(await server.accessLine(1)).toMatchObject({ listener: 'web/exact', route: 'default/route0' });
  });

  test('a host without a listener gets 404', async () => {
    const config = {
      gateways: { web: { port: 0, listeners: [{ name: 'only', hostname: 'a.example.com' }] } },
      routes: [{ gateways: 'web', ...answer('only') }],
    };
    await using server = await gateway(JSON.stringify(config));
    expect(await ask(server.url, 'a.example.com')).toBe('200 only');
    expect(await ask(server.url, 'b.example.com')).toBe('404 no listener for this host');
    expect(await server.accessLine(2)).toMatchObject({ 'http.status': '404', reason: 'NotFound' });
  });
});

describe('binds', () => {
  test('a bind serves its listeners with their routes by host', async () => {
    const config = {
      binds: [
        {
          port: 0,
          listeners: [
            { hostname: '*.example.com', routes: [answer('example')] },
            {
              name: 'rest',
              protocol: 'HTTP',
              routes: [{ name: 'named', namespace: 'team', ...answer('rest') }],
            },
          ],
        },
        { port: 0, listeners: [{ routes: [answer('second port')] }] },
      ],
    };
    await using server = await gateway(JSON.stringify(config));
    expect(await ask(server.url, 'a.example.com')).toBe('200 example');
    expect(await ask(server.url, 'other')).toBe('200 rest');
    expect(await server.accessLine(1)).toMatchObject({ listener: 'listener0', route: 'default/route0' });
    expect(await server.accessLine(2)).toMatchObject({ listener: 'rest', route: 'team/named' });
    expect(await ask(`http://127.0.0.1:${server.ports[1]}`, 'other')).toBe('200 second port');
  });

  test('policies of a listener run before routing, also for requests without a route', async () => {
    const listener = {
      policies: { apiKey: { mode: 'strict', keys: [{ key: 'secret-1' }] } },
      routes: [{ matches: [{ path: { exact: '/known' } }], ...answer('known') }],
    };
    await using server = await gateway(JSON.stringify({ binds: [{ port: 0, listeners: [listener] }] }));
    expect(await ask(server.url, 'x', '/other')).toBe('401 api key authentication failure: no API Key found');
    const headers = { authorization: 'Bearer secret-1' };
    expect((await send(`${server.url}/other`, { headers })).status).toBe(404);
    expect((await send(`${server.url}/known`, { headers })).status).toBe(200);
  });
});

describe('problems of listeners', () => {
  const refused = (config: object) => expect(gateway(JSON.stringify(config))).rejects;

  test('two listeners for the same host are refused', async () => {
    const listeners = [{ hostname: 'a.example.com' }, { hostname: 'A.example.com' }];
    await refused({
      gateways: { web: { port: 0, listeners } },
      routes: [{ gateways: 'web', ...answer('x') }],
    }).toThrow(
      'gateways.web.listeners.1.hostname: listeners `web/listener0` and `web/listener1` of port 0 serve the same host, `a.example.com`',
    );
  });

  test('a policy of a gateway with listeners is refused', async () => {
    await refused({
      gateways: { web: { port: 0, csrf: {}, listeners: [{}] } },
      routes: [{ gateways: 'web', ...answer('x') }],
    }).toThrow('csrf');
    await refused({
      gateways: { web: { port: 0, cors: { allowOrigins: ['*'] }, listeners: [{}] } },
      routes: [{ gateways: 'web', ...answer('x') }],
    }).toThrow('gateways.web.cors: `cors` of a gateway cannot be used with `listeners`');
  });

  test('an unknown listener is refused with the known names', async () => {
    await refused({
      gateways: { web: { port: 0, listeners: [{ name: 'a' }] } },
      routes: [{ gateways: 'web/b', ...answer('x') }],
    }).toThrow('routes.0.gateways: unknown gateway `web/b`');
  });

  test('a listener of a service mesh is refused', async () => {
    await refused({
      gateways: { web: { port: 0, protocol: 'HBONE', routes: [answer('x')] } },
    }).toThrow('gateways.web.protocol: listeners with the protocol `HBONE` are not supported');
  });
});
