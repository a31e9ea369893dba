import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../kit/folder.ts';
import type { Json } from '../../kit/mcp.ts';
import { mcpUpstream } from '../../kit/mcp-upstream.ts';
import { httpUpstream } from '../../kit/upstream.ts';
import { basic, linkIn, signInGateway, UserBrowser } from '../../kit/user-sign-in.ts';

// Authorization servers that name themselves, or register the gateway, in another way than expected.

const SAY = { name: 'say', arguments: { message: 'hello' } };

interface Options {
  /** The issuer, as the MCP server and the metadata write it. */
  readonly named?: (origin: string) => string;
  readonly issuer?: (origin: string) => string;
  /** More members of the answer to a registration. */
  readonly registered?: object;
}

const json = (response: ServerResponse, body: object): void =>
  void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));

/** A gateway whose user can sign in at a server, with an authorization server that signs in at once and says what it gets. */
async function scene({ named = (origin) => origin, issuer = named, registered = {} }: Options) {
  const registrations: Json[] = [];
  const tokens: { form: URLSearchParams; authorization: string | undefined }[] = [];
  let asked = '';
  const provider = await httpUpstream((_, response, { target, body, headers }) => {
    const origin = `http://${provider.address}`;
    const url = new URL(target, origin);
    if (url.pathname === '/.well-known/oauth-authorization-server')
      return json(response, {
        issuer: issuer(origin),
        authorization_endpoint: `${origin}/authorize`,
        token_endpoint: `${origin}/token`,
        registration_endpoint: `${origin}/register`,
        code_challenge_methods_supported: ['S256'],
      });
    if (url.pathname === '/register') {
      registrations.push(JSON.parse(body));
      const own = { client_id: `c${registrations.length}`, client_secret: 's', client_secret_expires_at: 0 };
      response.statusCode = 201;
      response.setHeader('content-type', 'application/json');
      return void response.end(JSON.stringify({ ...own, ...registered }));
    }
    if (url.pathname === '/authorize') {
      asked = url.searchParams.get('scope') ?? '';
      const back = new URL(url.searchParams.get('redirect_uri') ?? '');
      for (const [name, value] of [
        ['code', 'code'],
        ['state', url.searchParams.get('state') ?? ''],
        ['iss', issuer(origin)],
      ] as const)
        back.searchParams.set(name, value);
      return void response.writeHead(302, { location: back.href }).end();
    }
    if (url.pathname !== '/token') return void response.writeHead(404).end();
    tokens.push({ form: new URLSearchParams(body), authorization: headers['authorization'] as string });
    json(response, { access_token: asked, token_type: 'Bearer', scope: asked });
  });
  const server = await mcpUpstream({
    script: ({ path, headers, message }, response) => {
      const origin = `http://${String(headers['host'])}`;
      if (path !== '/mcp') {
        const about = { resource: `${origin}/mcp`, scopes_supported: ['read'] };
        json(response, { ...about, authorization_servers: [named(`http://${provider.address}`)] });
        return true;
      }
      const scopes = String(headers['authorization'] ?? '')
        .split(' ')
        .slice(1);
      if (scopes.length === 0) response.writeHead(401, { 'www-authenticate': 'Bearer' }).end();
      else if (message.params?.name !== 'write' || scopes.includes('write')) return false;
      else
        response
          .writeHead(403, { 'www-authenticate': 'Bearer error="insufficient_scope", scope="write"' })
          .end();
      return true;
    },
  });
  const folder = await temporaryFolder();
  const gate = await signInGateway(folder.path, { github: server });
  return {
    registrations,
    tokens,
    gate,
    session: await gate.session(basic('ann')),
    signIn: (answer: { text: string }) => new UserBrowser(basic('ann')).signIn(linkIn(answer)),
    [Symbol.asyncDispose]: async () => {
      await gate.close();
      await server[Symbol.asyncDispose]();
      await provider[Symbol.asyncDispose]();
      await folder.remove();
    },
  };
}

// python-sdk#1919 (Google), hermes-agent#95508, opencode#50036, agentconnect#2133.
test.each([
  ['with a slash that its metadata lack', '/', ''],
  ['without the slash of its metadata', '', '/'],
])('an issuer without a path that is named %s is the same', async (_, before, after) => {
  await using at = await scene({ named: (origin) => origin + before, issuer: (origin) => origin + after });
  expect((await at.signIn(await at.session.request('tools/call', SAY))).status).toBe(200);
  expect((await at.session.request('tools/call', SAY)).result.content[0].text).toContain('hello');
});

// SmartBear/smartbear-mcp#682.
test('an issuer with another path is another one', async () => {
  await using at = await scene({ issuer: (origin) => `${origin}/proxy` });
  expect((await at.signIn(await at.session.request('tools/call', SAY))).status).toBe(502);
});

// patvice/ruby_llm-mcp#137, onyx-dot-app/onyx#12874.
test.each([
  ['client_secret_post', 's', undefined],
  ['client_secret_basic', null, `Basic ${Buffer.from('c1:s').toString('base64')}`],
  ['none', null, undefined],
])(
  'a client that was registered with %s authenticates in that way',
  async (method, secret, authorization) => {
    await using at = await scene({ registered: { token_endpoint_auth_method: method } });
    expect((await at.signIn(await at.session.request('tools/call', SAY))).status).toBe(200);
    expect(at.tokens.map((each) => [each.form.get('client_secret'), each.authorization])).toEqual([
      [secret, authorization],
    ]);
  },
);

// open-webui/open-webui#29967. Servers made with python-sdk refuse scopes that a client was not registered for.
test('the gateway is registered for the scopes that it requests, and again for more', async () => {
  await using at = await scene({});
  await at.signIn(await at.session.request('tools/call', SAY));
  expect((await at.session.request('tools/call', SAY)).result.content[0].text).toContain('hello');
  const write = { name: 'write', arguments: {} };
  expect((await at.signIn(await at.session.request('tools/call', write))).status).toBe(200);
  expect((await at.session.request('tools/call', write)).result.isError).toBeUndefined();
  expect(at.registrations.map(({ scope }) => scope)).toEqual(['read', 'read write']);
});
