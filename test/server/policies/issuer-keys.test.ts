import { describe, expect, test } from 'vitest';
import { metadataUrls } from '../../../src/server/credentials/issuer-metadata.ts';
import { keySetUrlIn } from '../../../src/server/policies/jwt/issuer.ts';
import type { TestGatewayOptions } from '../../kit/gateway.ts';
import { AUDIENCE, type Idp, type IdpAnswer, json, startIdp } from '../../kit/idp.ts';
import { startOidcProvider } from '../../kit/oidc-provider.ts';
import { answeringGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { call, protectedGateway, signIn } from '../../kit/sign-in.ts';
import { signingKey, token } from '../../kit/tokens.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream, refusingPort } from '../../kit/upstream.ts';

// Keys of issuers that are found by metadata. Peers that guess the address reject every token of other providers
// (agigante80/actual-mcp-server#244, getnora-io/nora#352, stacklok/toolhive#199).

const POLICIES: readonly (readonly [name: string, policies: (issuer: string) => object])[] = [
  ['mcpAuthentication', (issuer) => signIn(issuer, { provider: undefined })],
  ['jwtAuth', (issuer) => ({ jwtAuth: { mode: 'strict', issuer, audiences: [AUDIENCE] } })],
];

const notFound: IdpAnswer = (_, response) => response.writeHead(404).end();

describe.each(POLICIES)('%s without `jwks`', (name, policies) => {
  const open = (issuer: string, options: TestGatewayOptions = {}) =>
    protectedGateway([{ policies: policies(issuer) }], options);

  /** Status of a request with a valid token, and the reason in the log if its keys are not available. */
  async function outcome(idp: Idp): Promise<{ status: number; detail: string | undefined }> {
    await using guarded = await open(idp.issuer);
    const { status } = await call(guarded, idp.token());
    return { status, detail: (await guarded.accessLine(1))['error.detail'] };
  }

  test(`${name} accepts a token of a real OpenID provider, whose keys its metadata locates`, async () => {
    await using idp = await startOidcProvider({ hasPasswords: true });
    await using guarded = await open(idp.issuer);
    const form = new URLSearchParams({ grant_type: 'password', client_id: AUDIENCE, username: 'alice' });
    const response = await fetch(`${idp.issuer}/protocol/openid-connect/token`, {
      method: 'POST',
      body: form,
    });
    const { access_token: access } = (await response.json()) as { access_token: string };
    expect((await call(guarded, access)).status).toBe(200);
    expect(idp.asked.slice(1)).toEqual([
      'GET /.well-known/oauth-authorization-server/realms/main',
      'GET /realms/main/protocol/openid-connect/certs',
    ]);
  });

  test(`${name} reads OpenID Connect metadata if there is none of RFC 8414`, async () => {
    await using idp = await startIdp();
    idp.answers.set('rfc8414', notFound);
    expect((await outcome(idp)).status).toBe(200);
    expect(idp.upstream.received.map(({ target }) => target)).toEqual([
      '/.well-known/oauth-authorization-server/realms/main',
      '/.well-known/openid-configuration/realms/main',
      '/realms/main/.well-known/openid-configuration',
      '/realms/main/protocol/openid-connect/certs',
    ]);
  });

  test(`${name} fetches cached keys again at each reload, and refuses tokens of a key that is gone`, async () => {
    await using idp = await startIdp();
    await using guarded = await open(idp.issuer, { live: 'asked' });
    const compromised = idp.token();
    expect((await call(guarded, compromised)).status).toBe(200);
    idp.published = [signingKey('next', 'ES256').jwk];
    expect((await call(guarded, compromised)).status).toBe(200);
    expect(await guarded.live.reload()).toBe(true);
    await until(async () => (await call(guarded, compromised)).status === 401);
  });

  test(`${name} reads the next metadata if one has no keys or another issuer`, async () => {
    for (const members of [{ jwks_uri: undefined }, { issuer: 'https://else.example' }]) {
      await using idp = await startIdp();
      idp.answers.set('rfc8414', (_, response) => {
        const jwks_uri = `${idp.issuer}/protocol/openid-connect/other`;
        json(response, 200, { issuer: idp.issuer, jwks_uri, ...members });
      });
      expect((await outcome(idp)).status).toBe(200);
      expect(idp.hits('certs')).toBe(1);
    }
  });

  test.each([
    ['a slash at its end', (issuer: string) => `${issuer}/`],
    ['another case', (issuer: string) => issuer.toUpperCase()],
    ['another host', (issuer: string) => issuer.replace('127.0.0.1', 'localhost')],
    ['null', () => null],
    ['a list', (issuer: string) => [issuer]],
    ['an object', (issuer: string) => ({ issuer })],
    ['a number', () => 7],
    ['nothing', () => undefined],
  ])(`${name} uses no keys of metadata with %s as the issuer`, async (_what, found) => {
    await using idp = await startIdp();
    idp.metadata = { issuer: found(idp.issuer) };
    const { status, detail } = await outcome(idp);
    expect(status).toBe(503);
    expect(detail).toContain('its metadata names the issuer');
    expect(detail).toContain(`expected ${idp.issuer}`);
    expect(idp.hits('certs')).toBe(0);
  });

  test.each([
    null,
    7,
    true,
    {},
    [],
    '',
    '/protocol/openid-connect/certs',
    'javascript:alert(1)',
    'file:///etc/passwd',
    'http://',
    'http://keys.example/certs',
    'http://169.254.169.254/latest',
    'http://localhost.evil.example/certs',
  ])(`${name} opens no \`jwks_uri\` of %j`, async (jwks_uri) => {
    await using idp = await startIdp();
    idp.metadata = { jwks_uri };
    const { status, detail } = await outcome(idp);
    expect(status).toBe(503);
    expect(detail).toContain('`jwks_uri`');
    expect(idp.hits('certs')).toBe(0);
  });

  test.each<[string, IdpAnswer, string]>([
    [
      'is larger than its limit',
      (_, response) => json(response, 200, { a: 'x'.repeat(300_000) }),
      'more than 262144 bytes',
    ],
    ['is no JSON', (_, response) => response.end('<html>'), 'did not answer with JSON'],
    ['is a list', (_, response) => json(response, 200, []), 'its metadata is not a JSON object'],
    ['nests 100,000 lists', (_, response) => response.end('['.repeat(100_000)), 'did not answer with JSON'],
    [
      'redirects',
      (_, response) => response.writeHead(302, { location: '/realms/main/.well-known/x' }).end(),
      'answered 302',
    ],
    ['fails', (_, response) => response.writeHead(500).end(), 'answered 500'],
  ])(`${name} answers 503 if the metadata %s`, async (_what, answer, reason) => {
    await using idp = await startIdp();
    idp.answers.set('rfc8414', answer).set('openid-configuration', answer);
    const { status, detail } = await outcome(idp);
    expect([status, detail]).toEqual([503, expect.stringContaining(reason)]);
  });

  test(`${name} answers 503 with one reason if the issuer cannot be reached`, async () => {
    const issuer = `http://127.0.0.1:${await refusingPort()}/realms/main`;
    await using guarded = await open(issuer);
    await using idp = await startIdp();
    expect((await call(guarded, idp.token({ iss: issuer }))).status).toBe(503);
    const { 'error.detail': detail = '' } = await guarded.accessLine(1);
    expect(detail.match(/could not be reached/g)).toHaveLength(1);
  });

  test(`${name} reads metadata and keys once for many tokens, and only the keys for an unknown key`, async () => {
    await using idp = await startIdp();
    await using guarded = await open(idp.issuer);
    const replies = await Promise.all(
      Array.from({ length: 30 }, (_, index) => call(guarded, idp.token({ sub: `s${index}` }))),
    );
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
    expect([idp.hits('rfc8414'), idp.hits('certs')]).toEqual([1, 1]);
    const next = signingKey('next');
    idp.published = [next.jwk];
    expect((await call(guarded, token(next, idp.claims()))).status).toBe(200);
    expect((await call(guarded, idp.token())).status).toBe(401);
    expect([idp.hits('rfc8414'), idp.hits('certs')]).toEqual([1, 2]);
  });

  test(`${name} reads the metadata again if there are no keys at the address that it named`, async () => {
    await using idp = await startIdp();
    const next = signingKey('next');
    await using moved = await httpUpstream((_, response) => json(response, 200, { keys: [next.jwk] }));
    await using guarded = await open(idp.issuer);
    expect((await call(guarded, idp.token())).status).toBe(200);
    idp.metadata = { jwks_uri: `http://${moved.address}/keys` };
    idp.answers.set('certs', notFound);
    expect((await call(guarded, token(next, idp.claims()))).status).toBe(200);
    expect([idp.hits('rfc8414'), idp.hits('certs'), moved.received.length]).toEqual([2, 2, 1]);
  });
});

test('metadata is read at the addresses of RFC 8414 and OpenID Connect, in the order of MCP clients', () => {
  expect(metadataUrls('https://idp.example/tenant/')).toEqual([
    'https://idp.example/.well-known/oauth-authorization-server/tenant',
    'https://idp.example/.well-known/openid-configuration/tenant',
    'https://idp.example/tenant/.well-known/openid-configuration',
  ]);
  expect(metadataUrls('https://idp.example')).toEqual([
    'https://idp.example/.well-known/oauth-authorization-server',
    'https://idp.example/.well-known/openid-configuration',
  ]);
});

test('keys are read with TLS, unless the issuer itself is configured without it', () => {
  const accepts = (issuer: string, jwks_uri: string): boolean => {
    try {
      return keySetUrlIn({ issuer, jwks_uri }, issuer) === jwks_uri;
    } catch {
      return false;
    }
  };
  expect(accepts('https://accounts.google.com', 'https://www.googleapis.com/oauth2/v3/certs')).toBe(true);
  expect(accepts('https://idp.example', 'http://idp.example/keys')).toBe(false);
  expect(accepts('https://idp.example', 'http://127.0.0.1/keys')).toBe(false);
  expect(accepts('http://keycloak:8080/realms/main', 'http://keycloak:8080/certs')).toBe(true);
  expect(accepts('http://keycloak:8080/realms/main', 'http://keycloak:9090/certs')).toBe(false);
  expect(accepts('http://localhost:1/realms/main', 'http://127.0.0.1:2/certs')).toBe(true);
  expect(accepts('https://localhost:1/realms/main', 'http://127.0.0.1:2/certs')).toBe(false);
});

test('jwtAuth needs `jwks` for an issuer that is no URL', async () => {
  for (const jwtAuth of [{ issuer: 'ci.example.com' }, { providers: [{ issuer: 'ci.example.com' }] }])
    await expect(answeringGateway({ jwtAuth })).rejects.toThrow(
      'expected `jwks`: the issuer is not an http or https URL',
    );
});

test('jwtAuth.providers finds the keys of each issuer in its metadata', async () => {
  await using one = await startIdp();
  await using two = await startIdp({ realm: 'other' });
  const providers = [one, two].map(({ issuer }) => ({ issuer }));
  await using gate = await answeringGateway({ jwtAuth: { mode: 'strict', providers } });
  const status = async (bearer: string): Promise<number> =>
    (await send(gate.url, { headers: { authorization: `Bearer ${bearer}` } })).status;
  expect([await status(one.token()), await status(two.token())]).toEqual([200, 200]);
  expect(await status(two.token({ iss: one.issuer }))).toBe(401);
});
