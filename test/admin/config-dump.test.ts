import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { endpoints } from '../../src/admin/endpoints/index.ts';
import type { ConfigDump, DumpEndpointSet } from '../../src/server/kernel/config-dump.ts';
import { gateway, type TestGateway } from '../kit/gateway.ts';
import { send } from '../kit/send.ts';
import { verifies } from '../kit/verifies.ts';

async function dumpOf(running: TestGateway): Promise<ConfigDump> {
  return JSON.parse((await send(`${running.admin}/config_dump`)).text) as ConfigDump;
}

const settings = { adminAddr: 'off', connectionTerminationDeadline: '100ms' };

describe('the configuration dump', () => {
  verifies(
    ['gateway.admin.config-dump', 'gateway.admin.config-dump.parts'],
    'the configuration dump has all parts in order, with the types that other tools expect',
    async () => {
      await using running = await gateway(
        JSON.stringify({
          config: settings,
          gateways: { a: { port: 0 }, b: { port: 0, address: '127.0.0.1' } },
          mcp: { gateways: ['a', 'b'], targets: [{ name: 'far', mcp: { host: 'http://127.0.0.1:1/mcp' } }] },
          routes: [
            {
              gateways: 'a',
              backends: [
                { llm: { models: [{ name: 'm', provider: 'echo' }] } },
                { weight: 0, host: 'localhost:1' },
              ],
            },
          ],
        }),
        { admin: true },
      );
      const dump = await dumpOf(running);
      expect(Object.keys(dump)).toEqual([
        'workloads',
        'services',
        'binds',
        'routes',
        'policies',
        'backends',
        'models',
        'version',
        'config',
      ]);
      expect([dump.workloads, dump.services]).toEqual([[], []]);
      // `agctl proxy config backends` fails as a whole when one of these is something else.
      for (const { backend } of dump.backends) {
        const [body, ...others] = Object.values(backend);
        expect(others).toEqual([]);
        expect([typeof body?.name, typeof body?.namespace]).toEqual(['string', 'string']);
      }
      const [ai] = dump.backends.flatMap(({ backend }) => backend['ai'] ?? []);
      const { providers } = (ai ?? { target: {} }).target as { providers: DumpEndpointSet[] };
      const [info] = Object.values(providers[0]?.active ?? {}).map((endpoint) => endpoint.info);
      expect([
        typeof info?.health,
        typeof info?.requestLatency,
        info?.totalRequests,
        info?.evictedUntil,
      ]).toEqual(['number', 'number', 0, null]);
      // A section on two gateways is one backend with a route on each.
      const keys = dump.binds.flatMap(({ listeners }) =>
        Object.values(listeners).flatMap(({ routes = {} }) => Object.keys(routes)),
      );
      expect(keys.toSorted()).toEqual([
        'gateway/a/default/route0',
        'gateway/a/mcp:default',
        'gateway/b/mcp:default',
      ]);
      expect(dump.backends.filter(({ backend }) => backend['mcp'] !== undefined)).toHaveLength(1);
    },
  );

  test('the configuration dump shows remote targets as references to backends with their addresses', async () => {
    const schema = '{"openapi":"3.0.0","paths":{"/a":{"get":{}}}}';
    const targets = [
      { name: 'new', mcp: { host: 'http://127.0.0.1:1' } },
      { name: 'old', sse: { host: 'https://old.example' } },
      { name: 'api', openapi: { host: 'localhost:3', schema, headers: { 'x-key': 'secret-value' } } },
    ];
    await using running = await gateway(JSON.stringify({ config: settings, mcp: { port: 0, targets } }), {
      admin: true,
    });
    const { backends } = await dumpOf(running);
    const mcp = backends.map(({ backend }) => backend['mcp']).find((backend) => backend !== undefined);
    const shown = JSON.stringify(mcp);
    expect(shown).toMatch(/"name":"new","mcp":\{"backend":\{"backend":"[^"]+\/0"\},"path":"\/mcp"\}/);
    expect(shown).toMatch(/"name":"old","sse":\{"backend":\{"backend":"[^"]+\/1"\},"path":"\/sse"\}/);
    expect(shown).toMatch(/"name":"api","openapi":\{"backend":\{"backend":"[^"]+\/2"\}\}/);
    const hosts = backends.flatMap(({ backend }) => (backend['host'] === undefined ? [] : [backend['host']]));
    expect(hosts.map((host) => (host as { target: unknown }).target)).toEqual([
      '127.0.0.1:1',
      'old.example:443',
      'localhost:3',
    ]);
    expect(JSON.stringify(backends)).not.toContain('secret-value');
  });

  test.each([
    ['127.0.0.1:15000', { SocketAddr: '127.0.0.1:15000' }],
    ['[::1]:15000', { SocketAddr: '[::1]:15000' }],
    ['localhost:15000', { Localhost: [true, 15000] }],
    ['LocalHost:15000', { Localhost: [true, 15000] }],
    [':15000', { SocketAddr: '[::]:15000' }],
    ['unix:/run/agctl.sock', { UnixSocket: '/run/agctl.sock' }],
    ['unix:///run/agctl.sock', { UnixSocket: '/run/agctl.sock' }],
    ['OFF', 'Off'],
    [undefined, { Localhost: [true, 15000] }],
  ])('the configuration dump shows the admin address %s as a tagged value', async (adminAddr, shown) => {
    const routes = [{ policies: { directResponse: { body: 'ok' } } }];
    const yaml = JSON.stringify({ config: { adminAddr }, gateways: { edge: { port: 0, routes } } });
    await using running = await gateway(yaml, { admin: true });
    expect((await dumpOf(running)).config['adminAddr']).toEqual(shown);
  });

  test('the configuration dump names the gateway as access log, metrics and expressions do', async () => {
    const routes = [{ policies: { directResponse: { body: 'ok' } } }];
    const add = { named: 'proxy.gateway.namespace + "/" + proxy.gateway.name' };
    const yaml = { config: settings, gateways: { edge: { port: 0, routes } } };
    await using running = await gateway(
      JSON.stringify({ ...yaml, frontendPolicies: { accessLog: { add } } }),
      { admin: true },
    );
    await send(running.url);
    const line = await running.accessLine(1);
    expect([line['gateway'], line['named'], line['listener']]).toEqual([
      'default/default',
      'default/default',
      'edge',
    ]);
    const [listener] = Object.values((await dumpOf(running)).binds[0]?.listeners ?? {});
    expect(listener).toMatchObject({
      gatewayNamespace: 'default',
      gatewayName: 'default',
      listenerName: 'edge',
    });
    const started = running.log.find((entry) => entry.includes('started bind'));
    expect(started).toContain('listener="edge"');
    expect(started).not.toContain('gateway=');
  });

  test('the configuration dump counts requests to a provider and their latency', async () => {
    await using running = await gateway(
      JSON.stringify({
        config: settings,
        llm: {
          port: 0,
          models: [{ name: 'm', provider: 'oaiCompat', params: { baseUrl: 'http://127.0.0.1:9/v1' } }],
        },
      }),
      { admin: true },
    );
    const body = JSON.stringify({ model: 'm', messages: [] });
    expect((await send(`${running.url}/v1/chat/completions`, { method: 'POST', body })).status).toBe(503);
    const { text } = await send(`${running.admin}/config_dump`);
    expect(text).toContain('"totalRequests": 1,\n');
    expect(text).toContain('"consecutiveFailures": 1,\n');
  });

  test('a large configuration dump is sent in pieces without blocking requests', async () => {
    const names = Array.from({ length: 8 }, (_, index) => `g${index}`);
    const routes = Array.from({ length: 600 }, (_, index) => ({
      name: `r${index}`,
      gateways: names,
      matches: [{ path: { exact: `/r${index}` } }],
      policies: { directResponse: { body: 'x'.repeat(200) } },
    }));
    const gateways = Object.fromEntries(names.map((name) => [name, { port: 0 }]));
    await using running = await gateway(JSON.stringify({ config: settings, gateways, routes }), {
      admin: true,
    });
    let done = false;
    const dump = send(`${running.admin}/config_dump`).finally(() => {
      done = true;
    });
    let answered = 0;
    while (!done) {
      await send(`${running.url}/r1`);
      answered += 1;
    }
    const { body } = await dump;
    expect(body.length).toBeGreaterThan(2_000_000);
    expect(Object.keys((JSON.parse(body.toString()) as ConfigDump).binds)).toHaveLength(8);
    expect(answered).toBeGreaterThan(10);
  });
});

/** A configuration with a different secret at every place that may hold one. */
function withSecrets(secret: (place: string) => string): string {
  return JSON.stringify({
    config: {
      ...settings,
      tracing: {
        otlpEndpoint: 'http://127.0.0.1:1',
        otlpProtocol: 'http',
        headers: { authorization: secret('otlp'), 'x-tenant': secret('tenant') },
      },
      session: { key: Buffer.from(secret('session')).toString('hex').padEnd(64, '0').slice(0, 64) },
    },
    gateways: {
      edge: {
        port: 0,
        routes: [
          {
            name: 'tools',
            policies: {
              apiKey: { keys: [{ key: secret('apiKey') }] },
              requestHeaderModifier: {
                set: { authorization: `Bearer ${secret('header')}`, 'x-api-key': secret('header2') },
              },
            },
            backends: [
              {
                mcp: {
                  targets: [
                    {
                      name: 'echo',
                      stdio: {
                        cmd: 'node',
                        args: ['echo.js', '--api-key', secret('argument'), `--password=${secret('option')}`],
                        env: {
                          ACCESS_TOKEN: secret('env'),
                          OTHER: '$REFERENCED_SECRET',
                          PLAIN: secret('plainEnv'),
                        },
                      },
                    },
                    { name: 'far', mcp: { host: `http://127.0.0.1:1/mcp?api_key=${secret('query')}` } },
                  ],
                },
              },
            ],
          },
        ],
      },
    },
    llm: {
      port: 0,
      providers: [
        {
          name: 'p',
          provider: 'oaiCompat',
          params: { baseUrl: 'http://127.0.0.1:9/v1', apiKey: secret('entry') },
        },
      ],
      models: [
        { name: 'a', provider: { reference: 'p' } },
        {
          name: 'b',
          provider: 'oaiCompat',
          params: { baseUrl: 'http://127.0.0.1:9/v1', apiKey: secret('model') },
          requestHeaders: { set: { authorization: `Basic ${secret('llmHeader')}` } },
        },
      ],
    },
  });
}

describe('secrets in the configuration dump', () => {
  const places = [
    'apiKey',
    'header',
    'header2',
    'argument',
    'option',
    'env',
    'plainEnv',
    'query',
    'entry',
    'model',
    'llmHeader',
    'otlp',
    'tenant',
  ];

  test('the configuration dump shows no secret of any kind from any part of the configuration', async () => {
    const secrets = fc.array(fc.stringMatching(/^[A-Za-z0-9_+~.-]{8,40}$/), {
      minLength: places.length + 1,
      maxLength: places.length + 1,
    });
    await fc.assert(
      fc.asyncProperty(secrets, async (values) => {
        // Marked, so that none is a word of the answers themselves.
        const known = new Map(places.map((place, index) => [place, `q7Z${index}${values[index]}`]));
        const referenced = `q7Zr${values.at(-1)}`;
        await using running = await gateway(
          withSecrets((place) => known.get(place) ?? 'q7Zsession'),
          {
            admin: true,
            env: { REFERENCED_SECRET: referenced },
          },
        );
        // Echoed by the gateway's own log fields, too.
        await send(`${running.url}/?token=${known.get('query')}`);
        for (const { path, methods, isSlow } of endpoints) {
          if (methods.GET === undefined || isSlow === true) continue;
          const { text } = await send(`${running.admin}${path}`);
          for (const [place, value] of [...known, ['reference', referenced] as const])
            expect(text.includes(value), `${place} (${value}) in ${path}`).toBe(false);
        }
        const checked = await send(`${running.admin}/api/config/validate`, {
          method: 'POST',
          body: withSecrets((place) => known.get(place) ?? 'q7Zsession').replace('"prefixMode"', '"prefix"'),
        });
        for (const value of known.values()) expect(checked.text).not.toContain(value);
      }),
      { numRuns: 15, endOnFailure: true },
    );
  });

  test('values of secret variables, credentials by their scheme and options of commands are secrets whatever their key and length', async () => {
    await using running = await gateway(
      `
config: ${JSON.stringify(settings)}
mcp:
  port: 0
  targets:
    - name: a
      stdio:
        cmd: node
        args: ["--key=\${A1}", "--pass", k8pq, "--root", "\${ROOT}", "\${WORD}", "--id", "\${ID}"]
    - name: h
      mcp: {host: "http://127.0.0.1:9/mcp"}
      policies:
        requestHeaderModifier: {set: {X-Plain: $MY_SECRET, X-Custom: "Bearer ZQh8", X-Level: debug, X-Version: $API_VERSION, X-On: "\${USE_KEYS}", X-Limit: "\${MAX_TOKENS}", X-User: "\${DB_PWD}"}}
llm:
  port: 0
  models:
    - name: m
      provider: echo
      requestHeaders: {set: {X-Plain: "v1 $MY_SECRET", X-Scheme: "basic WQh9"}}
`,
      {
        admin: true,
        env: {
          A1: 'q4x',
          MY_SECRET: 'z7z',
          WORD: 'debug',
          API_VERSION: '2024-01-02',
          ROOT: '/srv/7/data',
          ID: 'plain-7-id',
          USE_KEYS: 'true',
          MAX_TOKENS: '40961',
          DB_PWD: 'wpy',
        },
      },
    );
    const { text } = await send(`${running.admin}/config_dump`);
    const { text: file } = await send(`${running.admin}/api/config`);
    const { text: editor } = await send(`${running.admin}/api/config/file`);
    for (const secret of ['q4x', 'z7z', 'k8pq', 'ZQh8', 'WQh9', 'plain-7-id', 'wpy'])
      for (const answer of [text, file, editor]) expect(answer, secret).not.toContain(secret);
    // What names no secret, or is an ordinary word, stays readable.
    expect(text).toMatch(/"X-Level": "debug"/);
    expect(text).toMatch(/"X-On": "true"/);
    expect(text).toMatch(/"X-Limit": "40961"/);
    expect(text).toMatch(/"X-Version": "2024-01-02"/);
    expect(text).toContain('"/srv/7/data",\n');
    expect(file).toContain('X-Plain: $MY_SECRET');
  });
});
