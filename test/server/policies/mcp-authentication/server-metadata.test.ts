import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TestGateway } from '../../../kit/gateway.ts';
import { type Idp, type IdpAnswer, json, startIdp } from '../../../kit/idp.ts';
import { type HttpReply, send } from '../../../kit/send.ts';
import { BASE_URL, protectedGateway, signIn } from '../../../kit/sign-in.ts';
import { httpUpstream, type Received, refusingPort } from '../../../kit/upstream.ts';

const RESOURCE = '/.well-known/oauth-protected-resource';
const SERVER = '/.well-known/oauth-authorization-server';

const get = (gateway: TestGateway, path: string): Promise<HttpReply> => send(gateway.url, { target: path });

let idp: Idp;
let guarded: TestGateway;
beforeAll(async () => {
  idp = await startIdp();
  guarded = await protectedGateway([{ policies: signIn(idp.issuer) }]);
});
afterAll(() => Promise.all([guarded.close(), idp.upstream.close()]));

interface Told {
  readonly issuer: string;
  readonly document: Record<string, unknown>;
  readonly received: readonly Received[];
}

/** The metadata that a new gateway serves, and the requests that the provider received for it. */
async function metadataOf(more: object, answer?: IdpAnswer): Promise<Told> {
  await using own = await startIdp();
  if (answer !== undefined) own.answers.set('openid-configuration', answer);
  await using front = await protectedGateway([{ policies: signIn(own.issuer, more) }]);
  const document = JSON.parse((await get(front, SERVER)).text);
  return { issuer: own.issuer, document, received: own.upstream.received };
}

describe('authorization server metadata', () => {
  test("authorization server metadata replaces the provider's issuer and registration and removes its iss support", async () => {
    const published = JSON.parse((await send(`${idp.issuer}/.well-known/openid-configuration`)).text);
    const { authorization_response_iss_parameter_supported: promised, ...others } = published;
    expect(promised).toBe(true);
    expect(JSON.parse((await get(guarded, SERVER)).text)).toEqual({
      ...others,
      issuer: BASE_URL,
      registration_endpoint: `${BASE_URL}${SERVER}/client-registration`,
    });
  });

  test('authorization server metadata names the same issuer as the resource metadata, with its path', async () => {
    const { issuer, registration_endpoint: registration } = JSON.parse(
      (await get(guarded, `${SERVER}/mcp`)).text,
    );
    expect(issuer).toBe(`${BASE_URL}/mcp`);
    expect(registration).toBe(`${BASE_URL}${SERVER}/mcp/client-registration`);
  });

  test('authorization server metadata comes from OpenID Connect discovery for idpx and from RFC 8414 otherwise', async () => {
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

  test('authorization server metadata is fetched once for concurrent requests and cached', async () => {
    await using own = await startIdp();
    await using front = await protectedGateway([{ policies: signIn(own.issuer) }]);
    await Promise.all(Array.from({ length: 50 }, () => get(front, SERVER)));
    await get(front, SERVER);
    expect(own.hits('openid-configuration')).toBe(1);
  });

  test('authorization server metadata drops endpoints with unsafe URLs and adds none', async () => {
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

// Clients refuse the whole document because of one member of another type: null is none (RFC 8414 §3.2).
test('members of provider metadata that clients cannot use are left out', async () => {
  await using own = await startIdp();
  own.metadata = {
    scopes_supported: null,
    grant_types_supported: 'authorization_code',
    response_types_supported: ['code', 7],
    token_endpoint_auth_methods_supported: [],
    code_challenge_methods_supported: ['S256'],
    service_documentation: null,
    op_policy_uri: 7,
    revocation_endpoint: null,
    introspection_endpoint: ['http://a.example/'],
    end_session_endpoint: { href: 'http://a.example/' },
    request_parameter_supported: true,
  };
  await using front = await protectedGateway([{ policies: signIn(own.issuer) }]);
  const document = JSON.parse((await get(front, SERVER)).text);
  expect(Object.keys(document).sort()).toEqual([
    'authorization_endpoint',
    'code_challenge_methods_supported',
    'issuer',
    'jwks_uri',
    'registration_endpoint',
    'request_parameter_supported',
    'token_endpoint',
  ]);
});

describe('unusable authorization server metadata', () => {
  const answers: readonly (readonly [name: string, answer: IdpAnswer, detail: string])[] = [
    [
      'of another issuer',
      (_, r) => json(r, 200, { issuer: 'http://evil.example' }),
      'names the issuer http://evil.example',
    ],
    ['without an issuer', (_, r) => json(r, 200, {}), 'names the issuer undefined'],
    ['whose issuer is null', (_, r) => json(r, 200, { issuer: null }), 'names the issuer null'],
    ['whose issuer is a list', (_, r) => json(r, 200, { issuer: [] }), 'names the issuer as an object'],
    [
      'whose issuer is an object without text',
      (_, r) => json(r, 200, { issuer: { toString: 1 } }),
      'names the issuer as an object',
    ],
    ['that is null', (_, r) => json(r, 200, null), 'is not a JSON object'],
    ['that is a text', (_, r) => json(r, 200, 'x'), 'is not a JSON object'],
    ['that is empty', (_, r) => r.writeHead(204).end(), 'answered 204'],
    ['with a status over 599', (_, r) => r.writeHead(999).end(), 'answered with status 999'],
    ['nested 100,000 times', (_, r) => r.end('['.repeat(100_000)), 'did not answer with JSON'],
    ['that is a list', (_, r) => json(r, 200, []), 'is not a JSON object'],
    ['that is HTML', (_, r) => r.end('<html>'), 'did not answer with JSON'],
    ['that is missing', (_, r) => r.writeHead(404).end(), 'answered 404'],
    ['that requires HTTPS', httpsRequired, 'answered 403 (HTTPS required)'],
    ['of 300 kB', (_, r) => json(r, 200, { text: 'x'.repeat(300_000) }), 'more than 262144 bytes'],
  ];
  test.each(answers)(
    'authorization server metadata %s gives 502 and a logged reason',
    async (_, answer, detail) => {
      await using own = await startIdp();
      own.answers.set('openid-configuration', answer);
      await using front = await protectedGateway([{ policies: signIn(own.issuer) }]);
      const reply = await get(front, SERVER);
      expect(reply.status).toBe(502);
      expect(reply.text).toBe('the identity provider did not return a valid response');
      expect(reply.headers['access-control-allow-origin']).toBe('*');
      const line = await front.accessLine(1);
      expect(line).toMatchObject({
        reason: 'UpstreamFailure',
        'error.detail': expect.stringContaining(detail),
      });
      expect((await get(front, RESOURCE)).status).toBe(200);
      // A repeated request does not make the gateway fetch again immediately.
      await Promise.all(Array.from({ length: 20 }, () => get(front, SERVER)));
      expect(own.hits('openid-configuration')).toBe(1);
    },
  );

  test('authorization server metadata of an unreachable provider gives 502', async () => {
    const issuer = `http://127.0.0.1:${await refusingPort()}/realms/main`;
    await using front = await protectedGateway([{ policies: signIn(issuer) }]);
    expect((await get(front, SERVER)).status).toBe(502);
    expect(front.log.join('')).toContain('could not be reached: connection refused');
  });

  test('authorization server metadata is not fetched through a redirect', async () => {
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

function httpsRequired(_request: unknown, response: Parameters<IdpAnswer>[1]): void {
  json(response, 403, { error: 'invalid_request', error_description: 'HTTPS required' });
}
