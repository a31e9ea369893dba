import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfigText } from '../../../src/server/config/load.ts';
import { findProblems } from '../../../src/server/runtime/find-problems.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway } from '../../kit/gateway.ts';
import { mcpUpstream } from '../../kit/mcp-upstream.ts';
import { PASSWORDS, signInConfig } from '../../kit/user-sign-in.ts';

type Settings = NonNullable<Parameters<typeof signInConfig>[2]>;

/** The problems of a configuration, after `change`. */
async function problems(
  settings: Settings,
  change: (text: string) => string = (text) => text,
): Promise<string[]> {
  await using server = await mcpUpstream();
  const { config } = signInConfig(3000, { github: server }, settings);
  const loaded = loadConfigText(change(JSON.stringify(config)), 'gateway.yaml', {});
  const found = await findProblems(loaded, { folder: '/', env: {} });
  return found.filter(({ code }) => code !== 'AGW0302').map(({ message }) => message);
}

test('a configuration for sign-ins of users has no problems', async () => {
  expect(await problems({})).toEqual([]);
  expect(await problems({ pagePolicies: {}, signIn: { users: 'code' } })).toEqual([]);
});

test.each([
  [{ config: { session: {} } }, '`oauth` needs `config.session.key`'],
  [{ config: { database: undefined } }, '`oauth` needs `config.database`'],
  [{ config: { mcp: {} } }, '`oauth` needs `config.mcp.signIn`'],
  [{ pagePolicies: {} }, 'no policy that knows who opens the page'],
  [{ oauth: { clientSecret: 'secret' } }, '`clientSecret` needs `clientId`'],
  [{ signIn: { url: 'http://tools.example.com/sign-in' } }, 'http only on this machine'],
  [{ signIn: { url: 'https://tools.example.com/' } }, 'with a path'],
] satisfies [Settings, string][])('%j is refused or warned of: %s', async (settings, message) => {
  expect(await problems({ policies: PASSWORDS, ...settings })).toContainEqual(
    expect.stringContaining(message),
  );
});

test('names in two lists of passwords are warned of, as they are the same users', async () => {
  const other = { basicAuth: { ...PASSWORDS.basicAuth, htpasswd: 'ann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=' } };
  expect(await problems({ policies: PASSWORDS, pagePolicies: other })).toEqual([
    expect.stringMatching(
      /^a name in here is the same user as that name in the passwords of route `default\/tools`/,
    ),
  ]);
});

test('mistakes elsewhere do not lead to more problems of sign-ins', async () => {
  for (const [settings, message] of [
    [{ signIn: { url: 'https://tools.example.com/' } }, 'expected an https URL'],
    [{ config: { database: { urls: 'x' } } }, 'unknown field `urls`'],
    [{ policies: { basicAuth: { mode: 'none' } } }, 'not an allowed value'],
    [{ oauth: { scope: 'read' } }, 'unknown field `scope`'],
  ] satisfies [Settings, string][]) {
    const found = await problems(settings);
    expect(found).toContainEqual(expect.stringContaining(message));
    expect(found.filter((text) => /needs `config|has no effect|lead nowhere|who calls/.test(text))).toEqual(
      [],
    );
  }
});

test.each([
  ['{"clientSecret":"$$s"}', '`clientSecret` needs `clientId`', 'clientId'],
  ['{"authorizationServer":"http://id.example.com"}', 'expected an https URL', 'metadata'],
])('each problem of oauth %s says what to do', async (oauth, message, help) => {
  await using server = await mcpUpstream();
  const { config } = signInConfig(3000, { github: server });
  const text = JSON.stringify(config).replace('"oauth":{}', `"oauth":${oauth}`);
  const found = await findProblems(loadConfigText(text, 'gateway.yaml', {}), { folder: '/', env: {} });
  expect(found.filter(({ code }) => code === 'AGW0104')).toEqual([
    expect.objectContaining({
      message: expect.stringContaining(message),
      help: expect.stringContaining(help),
    }),
  ]);
});

test('a server without TLS does not say where users sign in, except on this machine', async () => {
  const to = (host: string) => (text: string) => text.replace(/"host":"http:[^"]*"/, `"host":"${host}"`);
  expect(await problems({}, to('http://tools.internal/mcp'))).toEqual([
    expect.stringContaining('what http://tools.internal says without TLS is not trusted'),
  ]);
  expect(await problems({}, to('http://localhost:1/mcp'))).toEqual([]);
  const oauth = { authorizationServer: 'https://id.example.com' };
  expect(await problems({ oauth }, to('http://tools.internal/mcp'))).toEqual([]);
  expect(await problems({}, to('https://tools.internal/mcp'))).toEqual([]);
});

test('all that sign-ins lack is said at once, with what to set', async () => {
  await using server = await mcpUpstream();
  const { config } = signInConfig(
    3000,
    { github: server },
    { config: { database: undefined, session: {}, mcp: {} } },
  );
  const loaded = loadConfigText(JSON.stringify(config), 'gateway.yaml', {});
  const found = await findProblems(loaded, { folder: '/', env: {} });
  const keys = '`config.database`, `config.session.key` and `config.mcp.signIn`';
  expect(found.filter(({ code }) => code === 'AGW0105').map(({ message, help }) => [message, help])).toEqual([
    [`\`oauth\` needs ${keys}`, expect.stringContaining('openssl rand -hex 32')],
    [`\`mcpSignIn\` needs ${keys}`, expect.stringContaining('sqlite://./agctl.db')],
  ]);
});

test('sign-ins that a reload adds need a restart, which the message says', async () => {
  await using folder = await temporaryFolder();
  await using server = await mcpUpstream();
  const { config } = signInConfig(0, { github: server });
  await using gate = await gateway('gateways: { default: { port: 0, routes: [] } }', {
    folder: folder.path,
    live: 'asked',
  });
  await writeFile(join(folder.path, 'test.yaml'), JSON.stringify(config));
  expect(await gate.live.reload()).toBe(false);
  const log = gate.log.join('');
  for (const key of ['oauth', 'mcpSignIn'])
    expect(log).toMatch(
      new RegExp(
        `${key}. needs the new .config.database., .config.session.key. and .config.mcp.signIn., which is read only`,
      ),
    );
});

test('links that lead nowhere are warned of', async () => {
  const without = (text: string) => text.replace('"mcpSignIn":{}', '"directResponse":{}');
  expect(await problems({}, without)).toEqual([expect.stringContaining('lead nowhere')]);
});

const KEYS = { apiKey: { mode: 'strict', keys: [{ key: 'key-of-ann' }] } };
const TOKENS = {
  mcpAuthentication: {
    issuer: 'https://id.example.com',
    audiences: ['tools'],
    resourceMetadata: { resource: 'https://tools.example.com/mcp' },
  },
};

test('a route to targets with oauth on which nobody is known is warned of, at each target', async () => {
  const message = 'no policy of route `default/tools` says who calls, so no user can sign in at this server';
  for (const settings of [
    { policies: {}, pagePolicies: PASSWORDS },
    { policies: {}, pagePolicies: {}, signIn: { users: 'code' } },
  ])
    expect((await problems(settings)).filter((text) => !text.includes('anyone who reaches port'))).toEqual([
      message,
    ]);
});

test.each([
  [
    'keys, and names in the browser',
    { policies: KEYS, pagePolicies: PASSWORDS },
    '`basicAuth` of this page and `apiKey` of route',
  ],
  [
    'keys, and names in the browser beside codes',
    { policies: KEYS, pagePolicies: PASSWORDS, signIn: { users: 'code' } },
    '`basicAuth` of this page and `apiKey` of route',
  ],
  ['keys, also for the browser', { policies: KEYS }, '`apiKey` of route `default/sign-in` refuses everybody'],
  [
    'keys, also for the browser beside codes',
    { policies: KEYS, signIn: { users: 'code' } },
    '`apiKey` of route `default/sign-in` refuses everybody',
  ],
  [
    'tokens, also for the browser',
    { policies: TOKENS },
    '`mcpAuthentication` of route `default/sign-in` refuses',
  ],
  ['names, and tokens of clients', { policies: TOKENS, pagePolicies: PASSWORDS }, 'never know the same user'],
] satisfies [string, Settings, string][])(
  'a page that cannot know its users is warned of: %s',
  async (_, settings, message) => {
    expect(await problems(settings)).toEqual([expect.stringContaining(message)]);
  },
);

test.each([
  { policies: KEYS, pagePolicies: {}, signIn: { users: 'code' } },
  { policies: { ...KEYS, ...PASSWORDS }, pagePolicies: PASSWORDS },
] satisfies Settings[])('a page that can know its users is not warned of: %#', async (settings) => {
  expect(await problems(settings)).toEqual([]);
});

test('the page without a target at which users sign in is warned of', async () => {
  const without = (text: string) => text.replace('"oauth":{}', '"key":"$$"');
  expect(await problems({}, without)).toEqual([expect.stringContaining('`signIn` has no effect')]);
});

test('oauth for a host or for all targets of a route is refused, with the place where it belongs', async () => {
  const loaded = loadConfigText(
    JSON.stringify({
      gateways: {
        default: {
          port: 3000,
          routes: [
            {
              policies: { backendAuth: { oauth: {} } },
              backends: [{ host: '127.0.0.1:1', policies: { backendAuth: { oauth: {} } } }],
            },
          ],
        },
      },
    }),
    'gateway.yaml',
    {},
  );
  const found = await findProblems(loaded, { folder: '/', env: {} });
  expect(found.map(({ message, help }) => [message, help])).toEqual(
    Array.from({ length: 2 }, () => ['unknown field `oauth`', expect.stringContaining('`mcp.targets`')]),
  );
});

test('oauth is for targets of MCP over HTTP, and a method of its own', async () => {
  const sse = (text: string) => text.replace('{"name":"github","mcp":', '{"name":"github","sse":');
  expect(await problems({}, sse)).toContainEqual(expect.stringContaining('`oauth` is for targets `mcp`'));
  const both = (text: string) => text.replace('"oauth":{}', '"oauth":{},"key":"k"');
  expect(await problems({}, both)).toContainEqual(expect.stringContaining('exactly one of'));
});
