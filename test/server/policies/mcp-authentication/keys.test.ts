import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../../kit/folder.ts';
import { json, startIdp } from '../../../kit/idp.ts';
import { call, protectedGateway, signIn } from '../../../kit/sign-in.ts';
import { base64url, type SigningKey, signature, signingKey, token } from '../../../kit/tokens.ts';
import { httpUpstream } from '../../../kit/upstream.ts';

const tools = (policies: object) => [{ policies }];

describe('mcpAuthentication.jwks', () => {
  test('mcpAuthentication reads the key set from the certs path for idpx and keycloak', async () => {
    for (const provider of [{ idpx: {} }, { keycloak: {} }]) {
      await using idp = await startIdp();
      await using guarded = await protectedGateway(tools(signIn(idp.issuer, { provider })));
      expect((await call(guarded, idp.token())).status).toBe(200);
      expect(idp.upstream.received.map(({ method, target }) => [method, target])).toEqual([
        ['GET', '/realms/main/protocol/openid-connect/certs'],
      ]);
    }
  });

  test("mcpAuthentication reads the key set from the issuer's well-known path without a provider", async () => {
    const key = signingKey('k');
    await using server = await httpUpstream((_, response, { target }) =>
      target === '/tenant/.well-known/jwks.json'
        ? json(response, 200, { keys: [key.jwk] })
        : response.writeHead(404).end(),
    );
    const issuer = `http://${server.address}/tenant`;
    await using idp = await startIdp();
    await using guarded = await protectedGateway(tools(signIn(issuer, { provider: undefined })));
    expect((await call(guarded, token(key, idp.claims({ iss: issuer })))).status).toBe(200);
  });

  test('mcpAuthentication.jwks.url is read independently of the issuer', async () => {
    await using idp = await startIdp();
    await using other = await startIdp({ realm: 'keys' });
    const jwks = { url: `${other.issuer}/protocol/openid-connect/certs` };
    await using guarded = await protectedGateway(tools(signIn(idp.issuer, { jwks })));
    expect((await call(guarded, token(other.key, idp.claims()))).status).toBe(200);
    expect((await call(guarded, idp.token())).status).toBe(401);
    expect(idp.upstream.received).toEqual([]);
  });

  test('mcpAuthentication.jwks.file is resolved relative to the configuration file', async () => {
    await using folder = await temporaryFolder();
    await using idp = await startIdp();
    await writeFile(join(folder.path, 'keys.json'), JSON.stringify({ keys: [idp.key.jwk] }));
    await using guarded = await protectedGateway(tools(signIn(idp.issuer, { jwks: { file: 'keys.json' } })), {
      folder: folder.path,
    });
    expect((await call(guarded, idp.token())).status).toBe(200);
    expect(idp.upstream.received).toEqual([]);
    // A changed file is read when a token names an unknown key.
    const next = signingKey('next');
    await writeFile(join(folder.path, 'keys.json'), JSON.stringify({ keys: [next.jwk] }));
    expect((await call(guarded, token(next, idp.claims()))).status).toBe(200);
    expect((await call(guarded, idp.token())).status).toBe(401);
  });

  test('mcpAuthentication.jwks accepts an inline key set', async () => {
    await using idp = await startIdp();
    const jwks = JSON.stringify({ keys: [idp.key.jwk] });
    await using guarded = await protectedGateway(tools(signIn(idp.issuer, { jwks })));
    expect((await call(guarded, idp.token())).status).toBe(200);
    expect((await call(guarded, token(signingKey('x'), idp.claims()))).status).toBe(401);
    expect(idp.upstream.received).toEqual([]);
  });

  test('mcpAuthentication.jwks that is not JSON is a load error', async () => {
    await expect(protectedGateway(tools(signIn('http://idp.example', { jwks: '{keys:' })))).rejects.toThrow(
      'gateways.main.routes.0.policies.mcpAuthentication.jwks: the key set is not valid JSON',
    );
  });
});

describe.each([
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
])('signature algorithm %s', (alg) => {
  test(`mcpAuthentication accepts a token signed with ${alg}`, async () => {
    await using idp = await startIdp({ alg });
    await using guarded = await protectedGateway(tools(signIn(idp.issuer)));
    expect((await call(guarded, idp.token())).status).toBe(200);
  });
});

describe('published keys', () => {
  const rsa = signingKey('k', 'RS256');

  async function verdicts(
    published: object[],
    signers: readonly [SigningKey, alg: string][],
  ): Promise<number[]> {
    await using idp = await startIdp();
    idp.published = published;
    await using guarded = await protectedGateway(tools(signIn(idp.issuer)));
    const statuses = [];
    for (const [key, alg] of signers) {
      const head = base64url(JSON.stringify({ alg, kid: key.kid }));
      const text = `${head}.${base64url(JSON.stringify(idp.claims()))}`;
      statuses.push((await call(guarded, `${text}.${base64url(signature(key, text, alg))}`)).status);
    }
    return statuses;
  }

  test('a published key without alg verifies the algorithms of its type only', async () => {
    const family = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'];
    const open = [{ ...rsa.jwk, alg: undefined }];
    expect(
      await verdicts(
        open,
        family.map((alg) => [rsa, alg]),
      ),
    ).toEqual([200, 200, 200, 200, 200, 200]);
    const ec = signingKey('k', 'ES256');
    expect(await verdicts(open, [[ec, 'ES256']])).toEqual([401]);
    expect(
      await verdicts(
        [{ ...ec.jwk, alg: undefined }],
        [
          [ec, 'ES256'],
          [ec, 'ES512'],
        ],
      ),
    ).toEqual([200, 401]);
  });

  // jpadilla/pyjwt#857: serializers of .NET and Java write null for members that a key does not have.
  test('a member of a published key that is null is one that it does not have', async () => {
    const published = [{ ...rsa.jwk, alg: null, use: null, key_ops: null, x5c: null }];
    expect(await verdicts(published, [[rsa, 'RS256']])).toEqual([200]);
  });

  test('a published key with alg verifies that algorithm only', async () => {
    expect(
      await verdicts(
        [rsa.jwk],
        [
          [rsa, 'RS256'],
          [rsa, 'RS512'],
          [rsa, 'PS256'],
        ],
      ),
    ).toEqual([200, 401, 401]);
  });

  test('a published key may share its id with a key of another type', async () => {
    const ec = signingKey('k', 'ES256');
    const signers: [SigningKey, string][] = [
      [rsa, 'RS256'],
      [ec, 'ES256'],
    ];
    expect(await verdicts([rsa.jwk, ec.jwk], signers)).toEqual([200, 200]);
    expect(await verdicts([ec.jwk, rsa.jwk], signers)).toEqual([200, 200]);
  });
});

describe('key sets with unusable keys', () => {
  const good = signingKey('good');
  const weak = (bits: number): object => signingKey('bad', 'RS256', bits).jwk;
  const ofType = (kind: 'x25519' | 'ed448'): object =>
    generateKeyPairSync(kind as 'x25519').publicKey.export({ format: 'jwk' });
  const secp256k1 = (): object =>
    generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey.export({ format: 'jwk' });

  const bad: readonly (readonly [name: string, key: () => unknown, problem: string | undefined])[] = [
    ['an RSA key of 1024 bits', () => weak(1024), 'RSA keys need 2048 bits, this key has 1024'],
    ['an RSA key of 512 bits', () => weak(512), 'RSA keys need 2048 bits'],
    ['an RSA key with exponent 1', () => ({ ...weak(2048), e: 'AQ' }), 'this key has 1'],
    ['a symmetric key', () => ({ kty: 'oct', kid: 'bad', k: 'c2VjcmV0' }), 'key type oct is not supported'],
    ['a key for key agreement', () => ({ ...ofType('x25519'), kid: 'bad' }), 'keys of type x25519'],
    ['an unsupported curve', () => ({ ...ofType('ed448'), kid: 'bad' }), 'keys of type ed448'],
    ['the curve secp256k1', () => ({ ...secp256k1(), kid: 'bad' }), 'is not supported'],
    ['a point beside the curve', () => ({ ...good.jwk, kid: 'bad', x: good.jwk.y, y: good.jwk.x }), ''],
    ['a key without an id', () => ({ ...good.jwk, kid: undefined }), 'it has no `kid`'],
    ['a key with a number as id', () => ({ ...good.jwk, kid: 5 }), 'it has no `kid`'],
    ['a key with an unprintable id', () => ({ ...good.jwk, kid: { toString: 1 } }), 'it has no `kid`'],
    ['a key whose alg does not fit its type', () => ({ ...good.jwk, kid: 'bad', alg: 'RS256' }), '`alg`'],
    ['a key for wrapping keys', () => ({ ...good.jwk, kid: 'bad', key_ops: ['wrapKey'] }), '`key_ops`'],
    [
      'an RSA key with a list as exponent',
      () => ({ ...signingKey('bad', 'RS256').jwk, e: ['AQAB'] }),
      'its `e` is not a string',
    ],
    ['an EC key without coordinates', () => ({ kty: 'EC', kid: 'bad', crv: 'P-256' }), ''],
    ['null', () => null, 'it is not an object'],
    ['a text', () => 'key', 'it is not an object'],
    ['a key for encryption', () => ({ ...good.jwk, kid: 'bad', use: 'enc' }), undefined],
  ];

  test.each(bad)(
    'a key set with %s keeps its other keys, and the log names the problem',
    async (_, key, problem) => {
      await using idp = await startIdp();
      const odd = key();
      idp.published = [odd as object, good.jwk];
      await using guarded = await protectedGateway(tools(signIn(idp.issuer)));
      expect((await call(guarded, token(good, idp.claims()))).status).toBe(200);
      expect((await call(guarded, token({ ...good, kid: 'bad' }, idp.claims()))).status).toBe(401);
      const told = guarded.log.filter((line) => line.includes('a signing key was ignored'));
      if (problem === undefined) expect(told).toEqual([]);
      else expect(told[0]).toContain(problem);
    },
  );

  test('a key set with private keys uses their public halves', async () => {
    await using idp = await startIdp();
    idp.published = [{ ...good.privateKey.export({ format: 'jwk' }), kid: 'good' }];
    await using guarded = await protectedGateway(tools(signIn(idp.issuer)));
    expect((await call(guarded, token(good, idp.claims()))).status).toBe(200);
  });
});
