import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { indentJson } from '../../../src/cli/proxy/json-text.ts';
import { yamlOf } from '../../../src/cli/proxy/yaml-text.ts';
import { cli } from '../../kit/cli.ts';
import { fakeAdmin, says } from '../../kit/fake-admin.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { AGCTL } from '../../kit/process.ts';
import { verifies } from '../../kit/verifies.ts';

const folder = await temporaryFolder();
afterAll(() => folder.remove());
const file = async (name: string, text: string | Buffer): Promise<string> => {
  await writeFile(join(folder.path, name), text);
  return join(folder.path, name);
};

const endpoint = (name: string, info: object): object => ({
  [name]: { endpoint: { name }, info, capacity: 1 },
});
/** In the format of upstream's `/config_dump`, with the members that its own command reads. */
const DUMP = {
  workloads: [],
  services: [
    {
      name: 'web',
      namespace: 'shop',
      endpoints: [
        {
          active: endpoint('cluster//Pod/shop/web-1', {
            health: 1,
            request_latency: 0.0021,
            total_requests: 3,
          }),
          rejected: {},
        },
      ],
    },
  ],
  binds: [
    {
      key: 'bind/3000',
      address: '[::]:3000',
      listeners: {
        'gateway/edge': {
          key: 'gateway/edge',
          listenerName: 'edge',
          routes: {
            'gateway/edge/default/tools': {
              name: 'tools',
              matches: [{ path: { pathPrefix: '/mcp' } }, { path: { exact: '/x' }, method: 'GET' }],
              backends: [{ weight: 1, backend: '/tools/backend0' }],
              inlinePolicies: [
                { cors: {} },
                { jwtAuth: { mcp: {} } },
                { authorization: { rules: { allow: ['a < b && c'] } } },
              ],
            },
          },
        },
      },
    },
  ],
  routes: {},
  policies: [],
  backends: [
    {
      backend: {
        mcp: {
          name: 'tools/backend0',
          namespace: '',
          target: { targets: [{ name: 'echo', stdio: { cmd: 'node' } }] },
        },
      },
    },
    {
      backend: {
        ai: {
          name: 'llm:model:small:0',
          namespace: '',
          target: {
            providers: [
              {
                active: endpoint('small', {
                  health: 1,
                  requestLatency: 0.302,
                  totalRequests: 7,
                  evictedUntil: null,
                }),
                rejected: {
                  ...endpoint('bad', {
                    health: 0,
                    totalRequests: 2,
                    requestLatency: 1,
                    evictedUntil: '1m3.3s',
                  }),
                  ...endpoint('idle', { totalRequests: 0 }),
                },
              },
            ],
          },
        },
      },
    },
  ],
  models: [],
  version: { version: '0.1.0' },
  config: { adminAddr: { SocketAddr: '[::]:15000' }, 'ttl\u001b]52;c;x\u0007': '30m0s' },
};
const dump = await file('dump.json', JSON.stringify(DUMP));

describe('`proxy config all`', () => {
  test('`proxy config all` prints JSON with an indent of two by default, whatever the indent of the dump', async () => {
    const pretty = await file('pretty.json', JSON.stringify(DUMP, null, 2));
    const { code, stdout } = await cli(['proxy', 'config', 'all', '--file', dump]);
    expect(code).toBe(0);
    expect(stdout).toBe(
      `${JSON.stringify(DUMP, null, 2).replace(/[<>&]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`)}\n`,
    );
    expect((await cli(['proxy', 'config', 'all', '--file', pretty])).stdout).toBe(stdout);
  });

  verifies(
    'gateway.agctl.config',
    '`proxy config all` prints YAML with sorted keys and an empty line at the end that any YAML reader parses alike',
    async () => {
      const { code, stdout } = await cli(['proxy', 'config', 'all', '--file', dump, '-o', 'yaml']);
      expect(code).toBe(0);
      expect(parse(stdout)).toEqual(DUMP);
      expect(stdout).toMatch(/^backends:\n- backend:\n {4}mcp:\n/);
      expect(stdout).toMatch(/\nbinds:\n- address: '\[::\]:3000'\n {2}key: bind\/3000\n/);
      expect(stdout).toMatch(/workloads: \[\]\n\n$/);
    },
  );

  test('`proxy config all` prints an overview on a terminal', async () => {
    const { stdout } = await cli(['proxy', 'config', 'all', '--file', dump], { isTTY: true });
    expect(stdout).toContain(
      'edge [::]:3000\n  tools  /mcp* or GET /x  → mcp (echo)  cors · mcpAuthentication · authorization\n',
    );
  });

  test('`proxy config all` escapes terminal control characters in every format', async () => {
    const hostile = await file(
      'hostile.json',
      JSON.stringify(DUMP).replaceAll('"tools"', '"t\u009b2J\u202e\\u001b[2J"'),
    );
    for (const form of ['short', 'json', 'yaml'])
      for (const what of ['all', 'routes', 'backends']) {
        const { stdout } = await cli([
          'proxy',
          'config',
          what,
          '--file',
          hostile,
          '-o',
          form,
          '--color',
          'always',
        ]);
        // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not be there.
        expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
      }
  });

  test('`proxy config all` keeps every digit and the order of keys', async () => {
    const text = '{"binds":[],"200":9007199254740993,"100":1.0,"a":1e400}';
    const digits = await file('digits.json', text);
    expect((await cli(['proxy', 'config', 'all', '--file', digits, '-o', 'json'])).stdout).toBe(
      '{\n  "binds": [],\n  "200": 9007199254740993,\n  "100": 1.0,\n  "a": 1e400\n}\n',
    );
    expect((await cli(['proxy', 'config', 'all', '--file', digits, '-o', 'yaml'])).stdout).toContain(
      "'200': 9007199254740993\n",
    );
  });

  test('`proxy config all` prints any JSON value as the same value in JSON and YAML', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        expect(JSON.parse([...indentJson(text)].join(''))).toEqual(JSON.parse(text));
        expect(parse([...yamlOf(JSON.parse(text))].join(''))).toEqual(JSON.parse(text));
      }),
      { numRuns: 300 },
    );
  });

  test.each([
    'yes',
    'No',
    '1e3',
    '0x1f',
    '1_000',
    '12:30',
    '2026-01-05',
    '- a',
    '? a',
    '{a}',
    '#x',
    'a #b',
    'a: b',
    'a:',
    '',
    ' a',
    '~',
    '.inf',
    '@a',
    '`a`',
    '*a',
    '&a',
    '!a',
    '%a',
    'null',
    'y',
    'off',
    '+1',
    '.5',
    '0o17',
    '017',
    '0b1',
    '1e-3',
    '1:30:00',
    '2026-01-05T10:00:00Z',
    '<<',
    '---',
    '%TAG',
    'two\nlines\n',
    ' indented\nlines',
    'tab\tand \u009b',
  ])('the text %j is a string in YAML 1.1 and 1.2', (text) => {
    for (const version of ['1.1', '1.2'] as const)
      expect(parse([...yamlOf({ [text]: text })].join(''), { version })).toEqual({ [text]: text });
  });
});

describe('`proxy config routes` and `backends`', () => {
  test('`proxy config routes` shows the address, matches and policies of each route', async () => {
    const { stdout } = await cli(['proxy', 'config', 'routes', '--file', dump]);
    expect(stdout).toBe(
      'ADDRESS    LISTENER  ROUTE  MATCH            BACKEND     POLICIES\n' +
        '[::]:3000  edge      tools  /mcp* or GET /x  mcp (echo)  cors, mcpAuthentication, authorization\n',
    );
  });

  test('`proxy config routes` names policies as the configuration does', async () => {
    const route = { name: 'a', inlinePolicies: [{ aPIKey: { mode: 'strict' } }, { timeout: {} }] };
    const binds = [{ address: '[::]:1', listeners: { l: { listenerName: 'l', routes: { a: route } } } }];
    const other = await file('keys.json', JSON.stringify({ binds }));
    const { stdout } = await cli(['proxy', 'config', 'routes', '--file', other]);
    expect(stdout).toContain('apiKey, timeout\n');
  });

  test("`proxy config backends` has upstream's columns and order, and shows unused backends only with --all", async () => {
    const { stdout } = await cli(['proxy', 'config', 'backends', '--file', dump]);
    expect(stdout).toBe(
      'TYPE     NAME               NAMESPACE  ENDPOINT  HEALTH         REQUESTS  LATENCY\n' +
        'Backend  llm:model:small:0             bad       Evict (63.3s)  2         1000.00ms\n' +
        'Backend  llm:model:small:0             small     1.00           7         302.00ms\n' +
        'Service  web                shop       web-1     1.00           3         2.10ms\n',
    );
    const { stdout: all } = await cli(['proxy', 'config', 'be', '--all', '--file', dump]);
    expect(all).toContain('idle      evicted        0\n');
  });

  test('`proxy config backends` without rows says where the other backends are shown', async () => {
    const onlyMcp = {
      backends: [
        { backend: { mcp: { name: 'tools', target: {} } } },
        { backend: { host: { name: 'web', target: 'a:1' } } },
      ],
    };
    const other = await file('only-mcp.json', JSON.stringify(onlyMcp));
    const { stdout, stderr } = await cli(['proxy', 'config', 'backends', '--file', other]);
    expect(stdout.split('\n')).toHaveLength(2);
    expect(stderr).toContain('MCP servers and services (2) have no row: `agctl proxy config all` shows them');
    expect((await cli(['proxy', 'config', 'backends', '--file', dump])).stderr).toBe('');
  });

  test('`proxy config backends -o json` prints the rows as data', async () => {
    const { stdout } = await cli(['proxy', 'config', 'backends', '--file', dump, '-o', 'json']);
    expect(JSON.parse(stdout)[1]).toEqual({
      type: 'Backend',
      name: 'llm:model:small:0',
      namespace: '',
      endpoint: 'small',
      health: '1.00',
      requests: 7,
      latencyMs: 302,
    });
    const { stdout: yaml } = await cli(['proxy', 'config', 'routes', '--file', dump, '-o', 'yaml']);
    expect(parse(yaml)[0]).toMatchObject({ route: 'tools', backends: ['mcp (echo)'] });
  });

  test('a dump that is empty or has members of other types gives a table without rows', async () => {
    const odd = await file(
      'odd.json',
      '{"binds":[null,{"listeners":[1]}],"backends":[{"backend":null},{"backend":{"host":"x"}},{}],"services":null}',
    );
    for (const what of ['routes', 'backends']) {
      const { code, stdout } = await cli(['proxy', 'config', what, '--file', odd]);
      expect([code, stdout.split('\n').length]).toEqual([0, 2]);
    }
  });
});

describe('invalid dumps', () => {
  test.each<[string, string | Buffer, string]>([
    ['empty', '', 'is empty'],
    ['half', '{"binds":[{"key":', 'is not JSON: it ends unexpectedly'],
    ['broken', '{\n "binds": [] "x"\n}', 'is not JSON: line 2, column 14'],
    ['bytes', Buffer.from('{"binds":"\xff"}', 'latin1'), 'is not UTF-8 text'],
    ['list', '[]', 'expected an object with binds, routes, policies and backends'],
    ['other', '{"a":1}', 'it has none of binds'],
    [
      'config',
      '# yaml-language-server: $schema=x\ngateways:\n  default: {}\n',
      'is a gateway configuration, not a dump\n  = help: run agctl config validate -f',
    ],
    ['deep', `{"binds":${'['.repeat(500)}${']'.repeat(500)}}`, 'nested deeper than 200 levels'],
    ['deeper', `{"binds":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, 'nested deeper than 1000'],
  ])('the invalid dump %s is exit code 2 with an explanation', async (name, text, message) => {
    const { code, stderr } = await cli([
      'proxy',
      'config',
      'all',
      '--file',
      await file(name, text),
      '-o',
      'yaml',
    ]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });

  test('a missing dump file, a folder and a file of 5 GB are rejected', async () => {
    await mkdir(join(folder.path, 'sub'), { recursive: true });
    await truncate(await file('huge', ''), 5 * 2 ** 30);
    for (const [name, message] of [
      ['none', 'no such file'],
      ['sub', 'is a directory'],
      ['huge', 'has more than 256 MiB'],
    ] as const) {
      const { code, stderr } = await cli(['proxy', 'config', 'all', '--file', name], { cwd: folder.path });
      expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
    }
  });
});

describe('dumps from a gateway', () => {
  test('`proxy config` reads the dump of the gateway given by --admin as URL or by AGCTL_ADMIN', async () => {
    await using admin = await fakeAdmin({
      '/config_dump': says(JSON.stringify(DUMP)),
      '/gw/config_dump': says(JSON.stringify(DUMP)),
    });
    for (const [args, env] of [
      [['--admin', admin.address], {}],
      [['--admin', `http://${admin.address}/gw/`], {}],
      [['--proxy-admin-port', String(admin.port)], {}],
      [[], { AGCTL_ADMIN: `localhost:${admin.port}` }],
    ] as const)
      expect((await cli(['config', 'routes', ...args], { env })).stdout).toContain('mcp (echo)');
    expect(admin.asked.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'GET /config_dump',
      'GET /gw/config_dump',
      'GET /config_dump',
      'GET /config_dump',
    ]);
  });

  test.each([
    [['--local', '--admin', 'x:1'], '--admin and --local name two different gateways'],
    [
      ['--admin', 'x'],
      '--admin "x" is not an address of an admin server\n  = help: expected host:port, unix:/path, or http://host:port',
    ],
    [['--admin', 'http://u:secret@x'], 'is not an address'],
    [['--proxy-admin-port', '70000'], '--proxy-admin-port 70000 is not a port'],
    [['--local', '--file', 'x'], '--file and --local or --admin name two different dumps'],
  ])('`proxy config` with %j is exit code 2', async (args, message) => {
    const { code, stderr } = await cli(['proxy', 'config', 'all', ...args]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });

  test('an unreachable gateway is exit code 3 with the address and the next step', async () => {
    const gone = await fakeAdmin({});
    await gone[Symbol.asyncDispose]();
    const { code, stderr } = await cli(['proxy', 'config', 'all', '--admin', gone.address]);
    expect([code, stderr]).toEqual([
      3,
      `error: no gateway at ${gone.address}: nothing listens there\n  = help: start the gateway (agctl serve -f gateway.yaml), or select its admin server with --admin <host:port>, the address in config.adminAddr\n`,
    ]);
    const socket = await cli(['proxy', 'config', 'all', '--admin', 'unix:/nowhere/admin.sock']);
    expect([socket.code, socket.stderr]).toEqual([
      3,
      expect.stringContaining('no gateway at unix:/nowhere/admin.sock: no such socket'),
    ]);
  });

  test.each([
    [
      'another service',
      says('<!doctype html><h1>Shop', 'text/html', 404),
      3,
      'is not an admin server: GET /config_dump is 404 Not Found',
    ],
    [
      'a page for everything',
      says('<!doctype html><h1>Shop', 'text/html'),
      3,
      'is not an admin server: its /config_dump is not JSON',
    ],
    [
      'one that wants a sign-in',
      says('sign in\u001b[2J first', 'text/plain', 401),
      4,
      'rejected the request: 401 Unauthorized, sign in\\u{1b}[2J first',
    ],
    [
      'one that fails',
      says('out of memory', 'text/plain', 500),
      1,
      'failed: 500 Internal Server Error, out of memory',
    ],
    [
      'half an answer',
      (response: {
        writeHead: (s: number, h: object) => void;
        write: (t: string) => void;
        destroy(): void;
      }) => {
        response.writeHead(200, { 'content-length': 100 });
        response.write('{"binds":');
        setImmediate(() => response.destroy());
      },
      3,
      'closed the connection in the middle of its response',
    ],
  ] as const)('a failed download of the dump is explained: %s', async (_, script, expected, message) => {
    await using admin = await fakeAdmin({ '/config_dump': script as never });
    const { code, stderr } = await cli(['proxy', 'config', 'all', '--admin', admin.address]);
    expect([code, stderr]).toEqual([expected, expect.stringContaining(message)]);
  });

  test('`proxy config` reads a dump of 100 MB', async () => {
    const big = Buffer.from(`{"binds":[],"config":{"x":"${'y'.repeat(100 * 2 ** 20)}"}}`);
    await using admin = await fakeAdmin({ '/config_dump': says(big) });
    const { code, stdout } = await cli(['proxy', 'config', 'all', '--admin', admin.address, '-o', 'short']);
    expect([code, stdout]).toEqual([0, expect.stringContaining('0 ports')]);
  });
});

test('`proxy config all | head` ends without an error', async () => {
  const large = await file(
    'large.json',
    JSON.stringify({ binds: Array.from({ length: 100_000 }, (_, key) => ({ key: `bind/${key}` })) }),
  );
  const child = spawn(
    '/bin/sh',
    ['-c', `"${process.execPath}" "${AGCTL}" proxy config all --file "${large}"; echo "code $?" >&2`],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let stderr = '';
  child.stderr.on('data', (text) => (stderr += text));
  await once(child.stdout, 'data');
  child.stdout.destroy();
  await once(child, 'close');
  expect(stderr).toBe('code 0\n');
});
