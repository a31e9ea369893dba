import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TestGateway } from '../../../kit/gateway.ts';
import { type Idp, type IdpAnswer, json, startIdp } from '../../../kit/idp.ts';
import { sendRaw } from '../../../kit/raw-http.ts';
import type { HttpReply } from '../../../kit/send.ts';
import { send } from '../../../kit/send.ts';
import { BASE_URL, call, protectedGateway, signIn } from '../../../kit/sign-in.ts';
import { httpUpstream, refusingPort } from '../../../kit/upstream.ts';

const RESOURCE = '/.well-known/oauth-protected-resource';
const SERVER = '/.well-known/oauth-authorization-server';

const get = (gateway: TestGateway, path: string, headers = {}): Promise<HttpReply> =>
  send(gateway.url, { target: path, headers });

let idp: Idp;
let guarded: TestGateway;
beforeAll(async () => {
  idp = await startIdp();
  guarded = await protectedGateway([{ policies: signIn(idp.issuer) }]);
});
afterAll(() => Promise.all([guarded.close(), idp.upstream.close()]));

/** The metadata of a gateway of its own, and what the provider was asked for it. */
async function metadataOf(more: object, answer?: IdpAnswer) {
  await using own = await startIdp();
  if (answer !== undefined) own.answers.set('openid-configuration', answer).set('rfc8414', answer);
  await using front = await protectedGateway([{ policies: signIn(own.issuer, more) }]);
  const resource = JSON.parse((await get(front, RESOURCE)).text) as Record<string, unknown>;
  const reply = await get(front, SERVER);
  const document = reply.status === 200 ? (JSON.parse(reply.text) as Record<string, unknown>) : {};
  return { issuer: own.issuer, resource, reply, document, received: own.upstream.received };
}

describe('the metadata of the resource', () => {
  test.each([RESOURCE, `${RESOURCE}/mcp`])('has these six members at %s', async (path) => {
    const reply = await get(guarded, path);
    expect(reply.status).toBe(200);
    expect(reply.headers['content-type']).toBe('application/json');
    expect(JSON.parse(reply.text)).toEqual({
      resource: `${BASE_URL}/mcp`,
      authorization_servers: [`${BASE_URL}/mcp`],
      mcp_protocol_version: '2025-06-18',
      resource_type: 'mcp-server',
      bearer_methods_supported: ['header'],
      scopes_supported: ['read', 'write'],
    });
  });

  test('names the provider when clients shall go there, or when it is of no special kind', async () => {
    const sent = await metadataOf({ authorizationServer: 'issuer' });
    expect(sent.resource['authorization_servers']).toEqual([sent.issuer]);
    const standard = await metadataOf({ provider: undefined });
    expect(standard.resource['authorization_servers']).toEqual([standard.issuer]);
  });

  test('says what else is configured, in snake case', async () => {
    const resourceMetadata = {
      resource: `${BASE_URL}/mcp`,
      resourceName: 'Tools',
      customMember: { keptAsIs: 1 },
    };
    const { resource } = await metadataOf({ resourceMetadata });
    expect(resource).toMatchObject({ resource_name: 'Tools', custom_member: { keptAsIs: 1 } });
  });

  test.each<Record<string, string>>([
    { host: 'evil.example' },
    { host: 'localhost', 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' },
    { host: 'localhost', forwarded: 'host=evil.example' },
  ])('is the same whatever the request says of the host: %o', async (headers) => {
    for (const path of [RESOURCE, SERVER]) {
      const reply = await get(guarded, path, headers);
      expect(reply.text).toBe((await get(guarded, path)).text);
      expect(reply.text).not.toContain('evil');
    }
    const challenge = (await call(guarded, undefined, { headers })).headers['www-authenticate'];
    expect(challenge).toBe(`Bearer resource_metadata="${BASE_URL}${RESOURCE}/mcp"`);
  });

  test('goes by the request while no resource is configured, and is where the challenge says', async () => {
    await using own = await startIdp();
    await using front = await protectedGateway([{ policies: signIn(own.issuer, { resourceMetadata: {} }) }]);
    const challenge = (await call(front)).headers['www-authenticate'] ?? '';
    const [, url = ''] = /resource_metadata="([^"]*)"/.exec(challenge) ?? [];
    expect(url).toBe(`${front.url}${RESOURCE}`);
    expect(JSON.parse((await send(url)).text)).toMatchObject({
      resource: front.url,
      authorization_servers: [front.url],
    });
    expect(JSON.parse((await get(front, SERVER)).text)).toMatchObject({
      issuer: front.url,
      registration_endpoint: `${front.url}${SERVER}/client-registration`,
    });
  });

  test('survives a host that is none', async () => {
    await using own = await startIdp();
    await using front = await protectedGateway([{ policies: signIn(own.issuer, { resourceMetadata: {} }) }]);
    for (const host of ['a"b', '[', 'a b']) {
      const request = `GET /mcp HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
      const { text } = await sendRaw(front.port, request);
      expect(text).toMatch(/^HTTP\/1\.1 40[01] /);
      if (text.startsWith('HTTP/1.1 401'))
        expect(text).toContain(`resource_metadata="http://localhost${RESOURCE}"`);
    }
  });
});

describe('the metadata of the authorization server', () => {
  test('is the provider’s but for issuer, registration and the promise of `iss`', async () => {
    const published = JSON.parse((await send(`${idp.issuer}/.well-known/openid-configuration`)).text);
    const { authorization_response_iss_parameter_supported: promised, ...others } = published;
    expect(promised).toBe(true);
    expect(JSON.parse((await get(guarded, SERVER)).text)).toEqual({
      ...others,
      issuer: BASE_URL,
      registration_endpoint: `${BASE_URL}${SERVER}/client-registration`,
    });
  });

  test('names the issuer that the resource’s metadata names, under the path that belongs to it', async () => {
    const { issuer, registration_endpoint: registration } = JSON.parse(
      (await get(guarded, `${SERVER}/mcp`)).text,
    );
    expect(issuer).toBe(`${BASE_URL}/mcp`);
    expect(registration).toBe(`${BASE_URL}${SERVER}/mcp/client-registration`);
  });

  test('comes from OpenID Connect discovery with idpx, and from RFC 8414 without', async () => {
    const withKind = await metadataOf({});
    expect(withKind.received.map(({ target }) => target)).toEqual([
      '/realms/main/.well-known/openid-configuration',
    ]);
    const standard = await metadataOf({ provider: undefined });
    expect(standard.received.map(({ target }) => target)).toEqual([
      '/.well-known/oauth-authorization-server/realms/main',
    ]);
    expect(standard.document).toMatchObject({
      issuer: standard.issuer,
      authorization_response_iss_parameter_supported: true,
      registration_endpoint: `${BASE_URL}${SERVER}/client-registration`,
    });
  });

  test('is fetched once for many, and kept', async () => {
    await using own = await startIdp();
    await using front = await protectedGateway([{ policies: signIn(own.issuer) }]);
    await Promise.all(Array.from({ length: 50 }, () => get(front, SERVER)));
    await get(front, SERVER);
    expect(own.hits('openid-configuration')).toBe(1);
  });

  test('loses endpoints that no client should open, and gains none', async () => {
    const { document } = await metadataOf({}, (_, response) => {
      const issuer = `http://${_.headers.host}/realms/main`;
      json(response, 200, {
        issuer,
        authorization_endpoint: 'javascript:alert(1)',
        token_endpoint: 'file:///etc/passwd',
        jwks_uri: 7,
        introspection_endpoint: 'https://idp.example/introspect',
        registration_endpoint: 'http://169.254.169.254/latest',
      });
    });
    expect(Object.keys(document).sort()).toEqual([
      'introspection_endpoint',
      'issuer',
      'registration_endpoint',
    ]);
    expect(document['registration_endpoint']).toBe(`${BASE_URL}${SERVER}/client-registration`);
  });
});

describe('metadata that cannot be used', () => {
  const answers: readonly (readonly [name: string, answer: IdpAnswer, detail: string])[] = [
    [
      'of another issuer',
      (_, r) => json(r, 200, { issuer: 'http://evil.example' }),
      'names the issuer http://evil.example',
    ],
    ['without an issuer', (_, r) => json(r, 200, {}), 'names the issuer undefined'],
    ['that is a list', (_, r) => json(r, 200, []), 'is not a JSON object'],
    ['that is a page', (_, r) => r.end('<html>'), 'did not answer with JSON'],
    ['that is missing', (_, r) => r.writeHead(404).end(), 'answered 404'],
    ['that needs HTTPS', httpsRequired, 'answered 403 (HTTPS required)'],
    ['of 300 kB', (_, r) => json(r, 200, { text: 'x'.repeat(300_000) }), 'more than 262144 bytes'],
  ];
  test.each(answers)('%s is 502, whose reason the log has', async (_, answer, detail) => {
    await using own = await startIdp();
    own.answers.set('openid-configuration', answer);
    await using front = await protectedGateway([{ policies: signIn(own.issuer) }]);
    const reply = await get(front, SERVER);
    expect(reply.status).toBe(502);
    expect(reply.text).toBe('the identity provider did not answer as it should');
    expect(reply.headers['access-control-allow-origin']).toBe('*');
    const line = await front.accessLine(1);
    expect(line).toMatchObject({
      reason: 'UpstreamFailure',
      'error.detail': expect.stringContaining(detail),
    });
    expect((await get(front, RESOURCE)).status).toBe(200);
    // Whoever asks again does not make the gateway ask again at once.
    await Promise.all(Array.from({ length: 20 }, () => get(front, SERVER)));
    expect(own.hits('openid-configuration')).toBe(1);
  });

  test('because nobody is there is 502, too', async () => {
    const issuer = `http://127.0.0.1:${await refusingPort()}/realms/main`;
    await using front = await protectedGateway([{ policies: signIn(issuer) }]);
    expect((await get(front, SERVER)).status).toBe(502);
    expect(front.log.join('')).toContain('could not be reached: connection refused');
  });

  test('because it is a redirect does not take us there', async () => {
    await using elsewhere = await httpUpstream();
    await using own = await startIdp();
    own.answers.set('openid-configuration', (_, response) =>
      response.writeHead(302, { location: `http://${elsewhere.address}/` }).end(),
    );
    await using front = await protectedGateway([{ policies: signIn(own.issuer) }]);
    expect((await get(front, SERVER)).status).toBe(502);
    expect(elsewhere.received).toEqual([]);
  });
});

describe('every document', () => {
  const documents = [
    [RESOURCE, 'GET'],
    [`${RESOURCE}/mcp`, 'GET'],
    [SERVER, 'GET'],
    [`${SERVER}/mcp`, 'GET'],
    [`${SERVER}/client-registration`, 'POST'],
    [`${SERVER}/mcp/client-registration`, 'POST'],
  ] as const;

  test.each(documents)(
    'answers a preflight, and pages of any origin may read it: %s',
    async (path, method) => {
      const headers = { origin: 'https://page.example', 'access-control-request-method': method };
      const preflight = await send(guarded.url, { target: path, method: 'OPTIONS', headers });
      const used = await send(guarded.url, {
        target: path,
        method,
        headers: { origin: 'https://page.example' },
        ...(method === 'POST' ? { body: '{}' } : {}),
      });
      expect(preflight.status).toBe(204);
      expect(used.status).toBeLessThan(300);
      for (const reply of [preflight, used])
        expect(reply.headers).toMatchObject({
          'access-control-allow-origin': '*',
          'access-control-allow-methods': `${method}, OPTIONS`,
          'access-control-allow-headers': 'content-type, mcp-protocol-version',
        });
    },
  );

  test.each(documents)('knows its methods: %s', async (path, method) => {
    for (const other of ['PUT', 'DELETE', method === 'GET' ? 'POST' : 'GET']) {
      const reply = await send(guarded.url, { target: path, method: other });
      expect(reply.status).toBe(405);
      expect(reply.headers.allow).toBe(`${method}, OPTIONS`);
      expect(reply.headers['access-control-allow-origin']).toBe('*');
    }
  });

  test('has one origin header also under a cors policy', async () => {
    const cors = { allowOrigins: ['https://page.example'], exposeHeaders: ['Mcp-Session-Id'] };
    await using front = await protectedGateway([{ policies: { ...signIn(idp.issuer), cors } }]);
    const { rawHeaders } = await get(front, RESOURCE, { origin: 'https://page.example' });
    const origins = rawHeaders.filter((name) => name.toLowerCase() === 'access-control-allow-origin');
    expect(origins).toHaveLength(1);
  });

  test.each([
    `${RESOURCE}/../../mcp`,
    `${SERVER}/client-registration/../token`,
    `${SERVER}/client-registration/token`,
    `${SERVER}//client-registration`,
    `/${SERVER}`,
    `${SERVER}/other`,
    `${RESOURCE}/mcp/`,
  ])('is at its path only, not at %s', async (path) => {
    const before = idp.upstream.received.length;
    expect([400, 404]).toContain((await get(guarded, path)).status);
    expect(idp.upstream.received).toHaveLength(before);
  });

  test('is told apart by its path where two resources have two providers', async () => {
    await using first = await startIdp({ realm: 'first' });
    await using second = await startIdp({ realm: 'second' });
    const at = (path: string) => ({ resourceMetadata: { resource: `${BASE_URL}${path}` } });
    await using front = await protectedGateway([
      { name: 'one', path: '/one', policies: signIn(first.issuer, at('/one')) },
      { name: 'two', path: '/two', policies: signIn(second.issuer, at('/two')) },
    ]);
    for (const [path, provider] of [
      ['/one', first],
      ['/two', second],
    ] as const) {
      const challenge = (await get(front, path)).headers['www-authenticate'];
      expect(challenge).toContain(`${RESOURCE}${path}"`);
      const { authorization_servers: servers } = JSON.parse((await get(front, `${RESOURCE}${path}`)).text);
      expect(servers).toEqual([`${BASE_URL}${path}`]);
      const metadata = JSON.parse((await get(front, `${SERVER}${path}`)).text);
      expect(metadata).toMatchObject({
        issuer: servers[0],
        token_endpoint: `${provider.issuer}/protocol/openid-connect/token`,
      });
      const target = new URL(metadata.registration_endpoint).pathname;
      await send(front.url, { target, method: 'POST', body: '{}' });
      expect(provider.hits('registration')).toBe(1);
    }
  });
});

function httpsRequired(_request: unknown, response: Parameters<IdpAnswer>[1]): void {
  json(response, 403, { error: 'invalid_request', error_description: 'HTTPS required' });
}
