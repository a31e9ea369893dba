import { expect, test } from 'vitest';
import { temporaryFolder } from '../../kit/folder.ts';
import { type McpUpstream, mcpUpstream } from '../../kit/mcp-upstream.ts';
import { type Scripted, scripted } from '../../kit/oidc-site.ts';
import { httpUpstream } from '../../kit/upstream.ts';
import { basic, linkIn, protectedServer, signInGateway, UserBrowser } from '../../kit/user-sign-in.ts';

const SAY = { name: 'say', arguments: { message: 'hello' } };

/** What the log says after a sign-in that failed because of the servers. */
async function problemOf(server: McpUpstream, oauth: object = {}): Promise<string> {
  await using folder = await temporaryFolder();
  await using gate = await signInGateway(folder.path, { github: server }, { oauth });
  const session = await gate.session(basic('ann'));
  const page = await new UserBrowser(basic('ann')).signIn(linkIn(await session.request('tools/call', SAY)));
  expect([page.status, page.text]).toEqual([502, expect.stringContaining('could not be used')]);
  return gate.log.filter((line) => line.includes('a sign-in of a user failed')).join('\n');
}

const count = (text: string, part: string): number => text.split(part).length - 1;

/** An authorization server that names a metadata document of its own. */
async function described(metadata: object, more: Partial<Scripted> = {}): Promise<Scripted> {
  const provider = await scripted();
  provider.metadata = { code_challenge_methods_supported: ['S256'], ...metadata };
  return Object.assign(provider, more);
}

test('a server without metadata is named, with the addresses asked and the setting that helps', async () => {
  await using server = await mcpUpstream({
    script: ({ path }, response) => {
      response.writeHead(path === '/mcp' ? 401 : 404).end();
      return true;
    },
  });
  const problem = await problemOf(server);
  const { origin } = new URL(server.url);
  const wellKnown = `${origin}/.well-known/oauth-protected-resource`;
  expect(problem).toContain(
    `the server has no metadata that names its authorization server (RFC 9728): ${wellKnown}/mcp and ${wellKnown} answered 404: set`,
  );
  expect(problem).toContain('target \\"github\\": ');
  expect(problem).toContain('`oauth.authorizationServer`');
});

test('an authorization server without metadata is named, with the addresses asked', async () => {
  await using provider = await httpUpstream((_, response) => response.writeHead(404).end());
  await using server = await protectedServer(`http://${provider.address}`);
  const problem = await problemOf(server);
  expect(problem).toContain(`http://${provider.address}/.well-known/oauth-authorization-server and http://`);
  expect([count(problem, 'answered 404'), count(problem, 'RFC 8414')]).toEqual([1, 1]);
});

test('an authorization server of another name is told apart from the expected one, once', async () => {
  await using provider = await httpUpstream((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"issuer":"https://other.example"}');
  });
  const issuer = `http://${provider.address}/tenant`;
  await using server = await protectedServer('https://unused.example');
  const problem = await problemOf(server, { authorizationServer: issuer });
  expect(problem).toContain(`names the issuer https://other.example, expected ${issuer}`);
  expect(problem).toContain('correct `oauth.authorizationServer`');
  expect(count(problem, 'names the issuer')).toBe(1);
});

test('an authorization server that registers no clients is named, with what to register there', async () => {
  await using provider = await described({});
  await using server = await protectedServer(provider.issuer);
  const problem = await problemOf(server);
  expect(problem).toContain(`target \\"github\\": the authorization server ${provider.issuer} registers no`);
  expect(problem).toMatch(
    /redirect URI http:\/\/127\.0\.0\.1:\d+\/sign-in\/callback\/github, and set `oauth\.clientId`/,
  );
});

test('a registration that is refused is reported with the address, the reason and what helps', async () => {
  await using endpoint = await httpUpstream((_, response) => {
    response
      .writeHead(400, { 'content-type': 'application/json' })
      .end('{"error":"invalid_redirect_uri","error_description":"https only"}');
  });
  const address = `http://${endpoint.address}/register`;
  await using provider = await described({ registration_endpoint: address });
  await using server = await protectedServer(provider.issuer);
  const problem = await problemOf(server);
  expect(problem).toContain(
    `${address} did not register the gateway (RFC 7591): invalid_redirect_uri (https only): `,
  );
  expect(problem).toContain('set `oauth.clientId`');
});

test('a token endpoint that fails is named with its target', async () => {
  await using provider = await described({}, { answer: { status: 503 } });
  await using server = await protectedServer(provider.issuer);
  const problem = await problemOf(server, { clientId: 'web', clientSecret: 'secret' });
  expect(problem).toContain(
    `target \\"github\\": ${provider.issuer}/token: the authorization server answered 503`,
  );
});
