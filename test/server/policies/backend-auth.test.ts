import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { jwtVerify } from 'jose';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway } from '../../kit/gateway.ts';
import { AUDIENCE, startIdp } from '../../kit/idp.ts';
import { proxyGateway, routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { httpUpstream } from '../../kit/upstream.ts';

const backendAuth = (config: object): object => ({ backendAuth: config });
const headers = {
  authorization: 'Bearer of-the-client',
  cookie: 'a=b; key=of-the-client',
  'x-key': 'of-the-client',
};

describe('backendAuth.key', () => {
  test.each([
    ['its default place', { key: 's3cret' }, { authorization: 'Bearer s3cret' }],
    ['its default place, as a value', { key: { value: 's3cret' } }, { authorization: 'Bearer s3cret' }],
    [
      'a header with a prefix',
      { key: { value: 's3cret', location: { header: { name: 'X-Key', prefix: 'Key ' } } } },
      { 'x-key': 'Key s3cret', authorization: 'Bearer of-the-client' },
    ],
    [
      'a header without a prefix',
      { key: { value: 's3cret', location: { header: { name: 'authorization' } } } },
      { authorization: 's3cret' },
    ],
    [
      'a cookie',
      { key: { value: 's3 cret', location: { cookie: { name: 'key' } } } },
      { cookie: 'a=b; key=s3%20cret' },
    ],
  ])('backendAuth puts a key into %s', async (_, config, expected) => {
    await using upstream = await httpUpstream((__, response) => response.end('ok'));
    await using gate = await proxyGateway(upstream.address, backendAuth(config));
    await send(gate.url, { headers });
    expect(upstream.received[0]?.headers).toMatchObject(expected);
    expect([...gate.accessLog, ...gate.log].join('')).not.toContain('s3cret');
  });

  test('backendAuth puts a key into a query parameter, in place of the client’s, and logs what the client sent', async () => {
    await using upstream = await httpUpstream((_, response) => response.end('ok'));
    const config = { key: { value: 's3&cret', location: { queryParameter: { name: 'api_key' } } } };
    await using gate = await proxyGateway(upstream.address, backendAuth(config));
    await send(`${gate.url}/a?api_key=mine&b=1`);
    await send(`${gate.url}/a`);
    expect(upstream.received.map(({ target }) => target)).toEqual([
      '/a?b=1&api_key=s3%26cret',
      '/a?api_key=s3%26cret',
    ]);
    expect((await gate.accessLine(1))['http.path']).not.toContain('s3');
  });

  test('backendAuth reads a key from a file, and adds further credentials', async () => {
    await using folder = await temporaryFolder();
    writeFileSync(join(folder.path, 'key'), 'in-a-file\n');
    await using upstream = await httpUpstream((_, response) => response.end('ok'));
    const credentials = [{ key: { file: 'key' }, location: { header: { name: 'x-second' } } }];
    const policies = backendAuth({ key: { value: { file: 'key' } }, credentials });
    await using gate = await gateway(routesConfig([{ policies, backends: [{ host: upstream.address }] }]), {
      folder: folder.path,
    });
    await send(gate.url);
    expect(upstream.received[0]?.headers).toMatchObject({
      authorization: 'Bearer in-a-file',
      'x-second': 'in-a-file',
    });
  });

  test('backendAuth of a backend is used for this backend only', async () => {
    await using one = await httpUpstream((_, response) => response.end('ok'));
    const location = { header: { name: 'x-key' } };
    await using gate = await gateway(
      routesConfig([
        {
          matches: [{ path: { pathPrefix: '/a' } }],
          backends: [{ host: one.address, policies: backendAuth({ key: { value: 'a1', location } }) }],
        },
        { backends: [{ host: one.address }] },
      ]),
    );
    await send(`${gate.url}/a`);
    await send(`${gate.url}/b`);
    expect(one.received.map(({ headers: seen }) => seen['x-key'])).toEqual(['a1', undefined]);
  });
});

describe('backendAuth.passthrough', () => {
  test.each([
    ['Authorization by default', {}, 'authorization', 'Bearer '],
    ['a configured header', { location: { header: { name: 'x-user-token' } } }, 'x-user-token', ''],
  ])('backendAuth forwards the validated token in %s', async (_, passthrough, name, prefix) => {
    await using idp = await startIdp();
    await using upstream = await httpUpstream((__, response) => response.end('ok'));
    const jwks = JSON.stringify({ keys: [idp.key.jwk] });
    const jwtAuth = { mode: 'strict', issuer: idp.issuer, audiences: [AUDIENCE], jwks };
    await using gate = await proxyGateway(upstream.address, { jwtAuth, ...backendAuth({ passthrough }) });
    const token = idp.token();
    await send(gate.url, { headers: { authorization: `Bearer ${token}` } });
    expect(upstream.received[0]?.headers[name]).toBe(prefix + token);
    if (name !== 'authorization') expect(upstream.received[0]?.headers.authorization).toBeUndefined();
  });

  test('backendAuth.passthrough leaves a request without a validated token as it is', async () => {
    await using upstream = await httpUpstream((_, response) => response.end('ok'));
    await using gate = await proxyGateway(upstream.address, backendAuth({ passthrough: {} }));
    await send(gate.url, { headers });
    expect(upstream.received[0]?.headers.authorization).toBe('Bearer of-the-client');
  });
});

const pem = (type: 'rsa' | 'ec', size: number | string): { text: string; publicKey: CryptoKey } => {
  const pair =
    type === 'rsa'
      ? generateKeyPairSync('rsa', { modulusLength: size as number })
      : generateKeyPairSync('ec', { namedCurve: size as string });
  return {
    text: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    publicKey: pair.publicKey as unknown as CryptoKey,
  };
};

describe('backendAuth.jwtSign', () => {
  test.each([
    ['RS256', undefined, pem('rsa', 2048)],
    ['PS256', 'PS256', pem('rsa', 2048)],
    ['ES256', 'ES256', pem('ec', 'prime256v1')],
    ['ES384', 'ES384', pem('ec', 'secp384r1')],
  ])('backendAuth signs a token with %s for each request', async (name, alg, { text, publicKey }) => {
    await using upstream = await httpUpstream((_, response) => response.end('ok'));
    const claims = { iss: 'ACCOUNT.USER', aud: ['a', 'b'], level: 3 };
    const jwtSign = { signingKey: text, alg, kid: 'k1', claims, ttl: '60s' };
    await using gate = await proxyGateway(upstream.address, backendAuth({ jwtSign }));
    await send(gate.url, { headers });
    const sent = /^Bearer (.+)$/.exec(String(upstream.received[0]?.headers.authorization))?.[1] ?? '';
    const { payload, protectedHeader } = await jwtVerify(sent, publicKey, {
      issuer: 'ACCOUNT.USER',
      audience: 'a',
    });
    expect(protectedHeader).toEqual({ alg: name, typ: 'JWT', kid: 'k1' });
    expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(70);
    expect(payload).toMatchObject(claims);
    expect(payload.nbf).toBeUndefined();
  });

  test('backendAuth.jwtSign puts its token into a configured header', async () => {
    await using upstream = await httpUpstream((_, response) => response.end('ok'));
    const jwtSign = { signingKey: pem('rsa', 2048).text, location: { header: { name: 'x-jwt' } } };
    await using gate = await proxyGateway(upstream.address, backendAuth({ jwtSign }));
    await send(gate.url, { headers });
    expect(upstream.received[0]?.headers['x-jwt']).toMatch(/^eyJ/);
    expect(upstream.received[0]?.headers.authorization).toBe('Bearer of-the-client');
  });
});

describe('backendAuth configuration', () => {
  const rsa = pem('rsa', 2048).text;
  test.each([
    ['nothing', {}, /exactly one of/],
    ['two methods', { key: 'a', passthrough: {} }, /exactly one of/],
    [
      'a key that is not there',
      { key: { file: '/nowhere/key' } },
      /key\.file: file not found: \/nowhere\/key/,
    ],
    ['a key of two lines', { key: 'a\nb' }, /characters that a header cannot have/],
    ['an expression as the place', { key: { value: 'a', location: { expression: 'x' } } }, /expression/],
    [
      'the host header',
      { key: { value: 'a', location: { header: { name: 'host' } } } },
      /expected a header other/,
    ],
    [
      'a signing key of another kind',
      { jwtSign: { signingKey: rsa, alg: 'ES256' } },
      /of the kind rsa; ES256/,
    ],
    ['a short signing key', { jwtSign: { signingKey: pem('rsa', 1024).text } }, /shorter than 2048 bits/],
    ['text that is no key', { jwtSign: { signingKey: 'key' } }, /not a private key in PEM/],
    [
      'a claim of the signer',
      { jwtSign: { signingKey: rsa, claims: { iat: 1 } } },
      /`iat` is set for each token/,
    ],
    ['a lifetime of nothing', { jwtSign: { signingKey: rsa, ttl: '0s' } }, /at least one second/],
  ])('backendAuth with %s is refused', async (_, config, expected) => {
    await expect(proxyGateway('127.0.0.1:1', backendAuth(config))).rejects.toThrow(expected);
  });
});
