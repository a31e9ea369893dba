import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TestGateway } from '../../../kit/gateway.ts';
import { type Idp, json, startIdp } from '../../../kit/idp.ts';
import { type HttpReply, type SendOptions, send } from '../../../kit/send.ts';
import { protectedGateway, signIn } from '../../../kit/sign-in.ts';
import { refusingPort } from '../../../kit/upstream.ts';

const PATH = '/.well-known/oauth-authorization-server/client-registration';

const CLIENT = {
  client_name: 'A client',
  redirect_uris: ['http://127.0.0.1:33418/callback'],
  grant_types: ['authorization_code'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
};

/** Registers a client; a string is sent as the raw body. */
function register(
  { url }: { url: string },
  body: object | string = CLIENT,
  options: SendOptions = {},
): Promise<HttpReply> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return send(url, { target: PATH, method: 'POST', body: text, ...options });
}

let idp: Idp;
let guarded: TestGateway;
beforeAll(async () => {
  idp = await startIdp();
  guarded = await protectedGateway([{ policies: signIn(idp.issuer) }]);
});
afterAll(() => Promise.all([guarded.close(), idp.upstream.close()]));

describe('client registration', () => {
  test('client registration reaches the provider byte for byte without other parts of the request', async () => {
    const text = `{ "client_name" : "x", "unknown":1.0, "redirect_uris": ["cursor://callback"] }`;
    const headers = {
      cookie: 'a=b',
      authorization: 'Bearer secret',
      'x-any': '1',
      'content-type': 'text/plain',
    };
    const reply = await register(guarded, text, { headers, target: `${PATH}?x=1` });
    expect(reply.status).toBe(201);
    const { target, body, headers: got } = idp.asked('registration').at(-1) ?? {};
    expect(target).toBe('/realms/main/clients-registrations/openid-connect');
    expect(body).toBe(text);
    expect(Object.keys(got ?? {}).sort()).toEqual([
      'accept',
      'connection',
      'content-length',
      'content-type',
      'host',
    ]);
    expect(got).toMatchObject({ 'content-type': 'application/json', host: new URL(idp.issuer).host });
  });

  test("client registration returns the provider's body without its other headers", async () => {
    idp.answers.set('registration', (_, response) => {
      response.setHeader('set-cookie', 'session=1');
      response.setHeader('location', 'http://idp.internal/clients/1');
      json(response, 201, { ...CLIENT, client_id: 'generated', registration_access_token: 'x' });
    });
    const reply = await register(guarded);
    idp.answers.delete('registration');
    expect(reply.status).toBe(201);
    expect(JSON.parse(reply.text)).toMatchObject({ ...CLIENT, client_id: 'generated' });
    expect(Object.keys(reply.headers)).not.toContain('set-cookie');
    expect(Object.keys(reply.headers)).not.toContain('location');
    expect(reply.headers['content-type']).toBe('application/json');
  });

  const refusals: readonly (readonly [status: number, type: string, text: string])[] = [
    [
      403,
      'application/json',
      `{"error":"insufficient_scope","error_description":"Policy 'Trusted Hosts' rejected request to client-registration service. Details: Host not trusted."}`,
    ],
    [400, 'application/json;charset=UTF-8', '{"error":"invalid_redirect_uri"}'],
    [429, 'text/plain', 'slow down'],
    [500, 'text/html', '<h1>Oops</h1>'],
  ];
  test.each(refusals)(
    'client registration forwards a rejection with status %i of the provider',
    async (status, type, text) => {
      idp.answers.set('registration', (_, response) =>
        response.writeHead(status, { 'content-type': type }).end(text),
      );
      const reply = await register(guarded);
      idp.answers.delete('registration');
      expect([reply.status, reply.headers['content-type'], reply.text]).toEqual([status, type, text]);
      expect(reply.headers['access-control-allow-origin']).toBe('*');
    },
  );

  test('client registration does not follow a redirect', async () => {
    idp.answers.set('registration', (_, response) =>
      response.writeHead(307, { location: `${idp.issuer}/other` }).end(),
    );
    const reply = await register(guarded);
    idp.answers.delete('registration');
    expect(reply.status).toBe(307);
    expect(reply.headers.location).toBeUndefined();
    expect(idp.upstream.received.some(({ target }) => target.endsWith('/other'))).toBe(false);
  });

  test('client registration over 64 KiB does not reach the provider', async () => {
    const before = idp.hits('registration');
    const reply = await register(guarded, 'x'.repeat(65_537));
    expect(reply.status).toBe(413);
    expect(reply.headers['access-control-allow-origin']).toBe('*');
    expect(idp.hits('registration')).toBe(before);
  });

  test('client registration answers 502 when the provider is down and logs its address', async () => {
    const port = await refusingPort();
    await using front = await protectedGateway([
      { policies: signIn(`http://127.0.0.1:${port}/realms/main`) },
    ]);
    const reply = await register(front);
    expect([reply.status, reply.text]).toEqual([
      502,
      'the identity provider did not return a valid response',
    ]);
    expect(reply.headers['access-control-allow-origin']).toBe('*');
    expect((await front.accessLine(1))['error.detail']).toContain(`127.0.0.1:${port} could not be reached`);
  });

  test.each([
    ['70 KB of text', 'x'.repeat(70_000)],
    [
      '100,000 redirect URIs',
      JSON.stringify({ client_id: 'a', redirect_uris: Array<string>(100_000).fill('http://a/') }),
    ],
    ['nothing', ''],
    ['a page', '<html>sign in</html>'],
    ['null', 'null'],
    ['a list', '[{"client_id":"a"}]'],
    ['an object without client_id', '{"redirect_uris":[]}'],
    ['a number as client_id', '{"client_id":7}'],
    ['an empty client_id', '{"client_id":""}'],
  ])('client registration answers 502 when the provider answers 201 with %s', async (_, text) => {
    await using front = await protectedGateway([{ policies: signIn(idp.issuer) }]);
    idp.answers.set('registration', (_, response) =>
      response.writeHead(201, { 'content-type': 'application/json' }).end(text),
    );
    const reply = await register(front);
    idp.answers.delete('registration');
    expect([reply.status, reply.text]).toEqual([
      502,
      'the identity provider did not return a valid response',
    ]);
  });
});

describe('registration endpoint of the provider', () => {
  test("client registration uses the metadata's registration_endpoint at the provider's origin", async () => {
    await using own = await startIdp();
    own.metadata = { registration_endpoint: `${own.origin}/register?tenant=1` };
    await using front = await protectedGateway([{ policies: signIn(own.issuer, { provider: undefined }) }]);
    await register(front);
    expect(own.upstream.received.at(-1)?.target).toBe('/register?tenant=1');
  });

  test('client registration never uses a registration_endpoint at another host', async () => {
    await using elsewhere = await startIdp();
    await using own = await startIdp();
    own.metadata = { registration_endpoint: `${elsewhere.issuer}/clients-registrations/openid-connect` };
    await using front = await protectedGateway([{ policies: signIn(own.issuer) }]);
    expect((await register(front)).status).toBe(201);
    expect(own.hits('registration')).toBe(1);
    expect(elsewhere.upstream.received).toEqual([]);
  });

  test('client registration for idpx needs no provider metadata', async () => {
    await using own = await startIdp();
    own.answers.set('openid-configuration', (_, response) => response.writeHead(500).end());
    await using front = await protectedGateway([{ policies: signIn(own.issuer) }]);
    expect((await register(front)).status).toBe(201);
  });

  test('client registration answers 502 when the provider has no registration endpoint', async () => {
    await using own = await startIdp();
    own.metadata = { registration_endpoint: undefined };
    await using front = await protectedGateway([{ policies: signIn(own.issuer, { provider: undefined }) }]);
    expect((await register(front)).status).toBe(502);
    const metadata = await send(`${front.url}/.well-known/oauth-authorization-server`);
    expect(JSON.parse(metadata.text)).not.toHaveProperty('registration_endpoint');
  });
});

describe('client registration with a fixed clientId', () => {
  let fixed: TestGateway;
  beforeAll(async () => {
    fixed = await protectedGateway([{ policies: signIn(idp.issuer, { clientId: 'mcp-public' }) }], {
      limits: { registrationsPerAddress: 1_000, registrations: 1_000 },
    });
  });
  afterAll(() => fixed.close());

  test('client registration with a clientId is answered by the gateway without the provider', async () => {
    const before = idp.upstream.received.length;
    const reply = await register(fixed);
    expect(reply.status).toBe(201);
    expect(JSON.parse(reply.text)).toEqual({
      client_id: 'mcp-public',
      client_id_issued_at: 0,
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      redirect_uris: CLIENT.redirect_uris,
    });
    expect(idp.upstream.received).toHaveLength(before);
    expect(reply.headers['access-control-allow-origin']).toBe('*');
  });

  test('metadata with a clientId advertises registration even if the provider has none', async () => {
    await using own = await startIdp();
    own.metadata = { registration_endpoint: undefined };
    const policies = signIn(own.issuer, { provider: undefined, clientId: 'mcp-public' });
    await using front = await protectedGateway([{ policies }]);
    const metadata = await send(`${front.url}/.well-known/oauth-authorization-server`);
    expect(JSON.parse(metadata.text).registration_endpoint).toContain('/client-registration');
  });

  /** What a registration of these URIs with `allowedRedirectURIs` of VS Code, Cursor, claude.ai and ChatGPT is left with. */
  const REMOTE = [
    'https://vscode.dev/redirect',
    'cursor://anysphere.cursor-mcp/oauth/callback',
    'https://claude.ai/api/mcp/auth_callback',
    'https://chatgpt.com/connector_platform_oauth_redirect',
  ];

  // The lists are those of public reports: contextstream/mcp-server#57, soflyy/agent-connector-for-wp#111.
  test.each([
    [
      'VS Code',
      ['https://vscode.dev/redirect', 'http://127.0.0.1:33418/', 'http://localhost:33418/'],
      [1, 2],
    ],
    ['Cursor', ['cursor://anysphere.cursor-mcp/oauth/callback', 'http://localhost:8787/callback'], [1]],
    [
      'a client with a page',
      ['http://localhost/ok', 'https://page.example/callback', 'cursor://localhost/'],
      [0],
    ],
    ['a client with a lookalike', ['http://localhost.evil.example/', 'http://[::1]/'], [1]],
  ])('client registration with a clientId keeps the loopback redirect URIs of %s', async (_, uris, kept) => {
    const reply = await register(fixed, { redirect_uris: uris });
    expect(reply.status).toBe(201);
    expect(JSON.parse(reply.text).redirect_uris).toEqual(kept.map((index) => uris[index]));
  });

  test('client registration with a clientId accepts the redirect URIs in allowedRedirectURIs', async () => {
    const policies = signIn(idp.issuer, { clientId: 'mcp-public', allowedRedirectURIs: REMOTE });
    await using front = await protectedGateway([{ policies }]);
    for (const uri of REMOTE) {
      const reply = await register(front, { redirect_uris: [uri, `${uri}/other`] });
      expect([reply.status, JSON.parse(reply.text).redirect_uris]).toEqual([201, [uri]]);
    }
    const both = ['https://vscode.dev/redirect', 'http://127.0.0.1:33418/'];
    expect(JSON.parse((await register(front, { redirect_uris: both })).text).redirect_uris).toEqual(both);
    const other = await register(front, {
      redirect_uris: ['https://VSCODE.dev/redirect', 'https://vscode.dev/'],
    });
    expect(JSON.parse(other.text).error).toBe('invalid_redirect_uri');
  });

  test.each([
    'http://page.example/',
    'javascript:alert(1)',
    'https://a@b.example/',
    'https://a.example/#x',
    'x',
  ])('allowedRedirectURIs refuses %s', async (uri) => {
    const policies = signIn(idp.issuer, { clientId: 'mcp-public', allowedRedirectURIs: [uri] });
    await expect(protectedGateway([{ policies }])).rejects.toThrow('expected an https URL');
  });

  const INVALID: readonly (readonly [string, unknown])[] = [
    ['a page', ['https://evil.example/callback']],
    ['a host that begins with 127.0.0.1', ['http://127.0.0.1.evil.example/']],
    ['a host that begins with localhost', ['http://localhost.evil.example/']],
    ['a host name that begins with 127', ['http://127.evil.example/']],
    ['an address of a network', ['http://10.0.0.1/']],
    ['all addresses', ['http://0.0.0.0/']],
    ['localhost in the query', ['http://evil.example/?localhost']],
    ['localhost in an app', ['cursor://localhost/callback']],
    ['a script', ['javascript:alert(1)']],
    ['a script with a host', ['javascript://localhost/%0aalert(1)']],
    ['localhost with a dot at the end', ['http://localhost./']],
    ['an IPv4 address in IPv6', ['http://[::ffff:127.0.0.1]/']],
    ['an IPv4 address in IPv6, in hexadecimal', ['http://[::ffff:7f00:1]/']],
    ['a number as address', ['http://2130706433/']],
    ['a hexadecimal address', ['http://0x7f.0.0.1/']],
    ['a percent-encoded host', ['http://%6cocalhost/']],
    ['a scheme without slashes', ['http:localhost/']],
    ['user information', ['http://localhost/ok', 'http://localhost@evil.example/']],
    ['an address as user information', ['http://localhost/ok', 'http://127.0.0.1@evil.example/']],
    ['user information with a password', ['http://localhost/ok', 'http://localhost:80@evil.example/']],
    ['user information for localhost', ['http://localhost/ok', 'http://a@localhost/']],
    ['a backslash', ['http://localhost/ok', 'http://localhost\\@evil.example/']],
    ['a backslash in the path', ['http://localhost/ok', 'http://localhost/\\evil.example/']],
    ['a percent-encoded backslash in the host', ['http://localhost/ok', 'http://localhost%5c@evil.example/']],
    ['a percent-encoded at sign in the host', ['http://localhost/ok', 'http://localhost%40evil.example/']],
    ['a tab', ['http://localhost/ok', 'http://local\thost/']],
    ['a newline', ['http://localhost/ok', 'http://localhost/\nLocation: http://evil.example/']],
    ['a space', ['http://localhost/ok', ' http://localhost/']],
    ['a letter that browsers read as another', ['http://localhost/ok', 'http://ⓛocalhost/']],
    ['a full-width dot', ['http://localhost/ok', 'http://127。0。0。1/']],
    ['a broken percent-encoding', ['http://localhost/ok', 'http://localhost/%zz']],
    ['a fragment', ['http://localhost/ok', 'http://localhost/#evil']],
    ['a port over 65535', ['http://localhost/ok', 'http://localhost:99999/']],
    ['no scheme', ['http://localhost/ok', 'nonsense']],
    ['an empty text', ['http://localhost/ok', '']],
    ['a text of 4 KB', ['http://localhost/ok', `http://localhost/${'x'.repeat(4096)}`]],
    ['a number', ['http://localhost/ok', 7]],
    ['null', ['http://localhost/ok', null]],
    ['a list', ['http://localhost/ok', ['http://localhost/']]],
    ['an object', ['http://localhost/ok', { toString: 1 }]],
    ['1,000 redirect URIs', Array.from({ length: 1_000 }, (_, at) => `http://localhost:${at + 1}/`)],
    ['no redirect URI', []],
    ['a missing list', undefined],
    ['null instead of a list', null],
    ['a text instead of a list', 'http://localhost/'],
    ['an object instead of a list', { 0: 'http://localhost/', length: 1 }],
    ['true instead of a list', true],
  ];
  test.each(INVALID)('client registration with a clientId refuses redirect_uris with %s', async (_, uris) => {
    const reply = await register(fixed, { redirect_uris: uris });
    expect([reply.status, reply.headers['content-type']]).toEqual([400, 'application/json']);
    expect(JSON.parse(reply.text)).toEqual({
      error: 'invalid_redirect_uri',
      error_description: expect.stringContaining('redirect_uris'),
    });
  });

  test.each([
    'http://localhost:1/cb',
    'http://127.0.0.1/',
    'http://[::1]:8080/cb',
    'https://localhost/',
    'http://127.1/',
    'HTTP://LOCALHOST/',
    'http://localhost',
    'http://localhost?state=%40',
  ])('client registration with a clientId accepts the redirect URI %s', async (uri) => {
    expect((await register(fixed, { redirect_uris: [uri] })).status).toBe(201);
  });

  test.each(['', 'null', '7', '{', '"x"', '[]', '[{"redirect_uris":["http://localhost/"]}]'])(
    'client registration with a clientId rejects the body %o',
    async (body) => {
      const reply = await register(fixed, body);
      expect([reply.status, JSON.parse(reply.text)]).toEqual([
        400,
        {
          error: 'invalid_client_metadata',
          error_description: 'the registration is not a JSON object',
        },
      ]);
    },
  );
});
