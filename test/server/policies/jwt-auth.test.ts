import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { AUDIENCE, type Idp, startIdp } from '../../kit/idp.ts';
import { answeringGateway, proxyGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { seconds, signingKey, token } from '../../kit/tokens.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream, refusingPort } from '../../kit/upstream.ts';

let idp: Idp;
let other: Idp;
beforeAll(async () => {
  idp = await startIdp();
  other = await startIdp({ realm: 'other' });
});
afterAll(() => Promise.all([idp.upstream.close(), other.upstream.close()]));

const LOG_SUBJECT = { frontendPolicies: { accessLog: { add: { subject: 'default(jwt.sub, "nobody")' } } } };
const bearer = (value: string): { authorization: string } => ({ authorization: `Bearer ${value}` });
const urlOf = ({ issuer }: Idp): { url: string } => ({ url: `${issuer}/protocol/openid-connect/certs` });
const single = (more: object = {}): object => ({
  jwtAuth: { mode: 'strict', issuer: idp.issuer, audiences: [AUDIENCE], jwks: urlOf(idp), ...more },
});

async function outcome(gate: TestGateway, headers: Record<string, string> = {}): Promise<string> {
  const count = gate.accessLog.length + 1;
  const { status } = await send(gate.url, { headers });
  return `${status} ${(await gate.accessLine(count))['subject']}`;
}

describe('jwtAuth.mode', () => {
  test.each([
    ['strict', ['401 nobody', '401 nobody', '200 alice']],
    ['optional', ['200 nobody', '401 nobody', '200 alice']],
    ['permissive', ['200 nobody', '200 nobody', '200 alice']],
    [undefined, ['200 nobody', '401 nobody', '200 alice']],
  ])('jwtAuth mode %s decides on a missing, an expired and a valid token', async (mode, expected) => {
    await using gate = await answeringGateway(single({ mode }), LOG_SUBJECT);
    const outcomes = [
      await outcome(gate),
      await outcome(gate, bearer(idp.token({ exp: seconds(-100) }))),
      await outcome(gate, bearer(idp.token())),
    ];
    expect(outcomes).toEqual(expected);
  });

  test('jwtAuth answers 503 while the keys of the issuer cannot be loaded', async () => {
    const jwks = { url: `http://127.0.0.1:${await refusingPort()}/keys` };
    await using gate = await answeringGateway(single({ jwks }));
    const reply = await send(gate.url, { headers: bearer(idp.token()) });
    expect(reply.status).toBe(503);
    expect(reply.headers['retry-after']).toMatch(/^\d+$/);
  });
});

describe('jwtAuth refusals', () => {
  test('jwtAuth refuses with the challenge of RFC 6750 and the reason', async () => {
    await using gate = await answeringGateway(single());
    const missing = await send(gate.url);
    expect(missing).toMatchObject({ status: 401, text: 'JWT token required' });
    expect(missing.headers['www-authenticate']).toBe('Bearer');
    const foreign = await send(gate.url, { headers: bearer(idp.token({ aud: 'else' })) });
    expect(foreign.status).toBe(401);
    expect(foreign.text).toContain(`the token's audience is 'else', expected '${AUDIENCE}'`);
    expect(foreign.headers['www-authenticate']).toMatch(/^Bearer error="invalid_token", error_description="/);
  });

  test.each([
    ['garbage', () => 'garbage'],
    ['an unsigned token', () => `${idp.token().split('.').slice(0, 2).join('.')}.`],
    ['a token of another issuer', () => idp.token({ iss: 'https://else.example' })],
    ['a token without `exp`', () => idp.token({ exp: undefined })],
    ['a signature by another key of that id', () => token(signingKey('main-1'), idp.claims())],
  ])('jwtAuth refuses %s', async (_, made) => {
    await using gate = await answeringGateway(single());
    expect((await send(gate.url, { headers: bearer(made()) })).status).toBe(401);
  });

  // A token whose times are no times would never end.
  test.each(['exp', 'nbf', 'iat'])(
    'jwtAuth refuses a token whose `%s` is no time up to the year 9999',
    async (name) => {
      await using gate = await answeringGateway(single());
      const odd = [253_402_300_800, 1e15, 1e308, String(seconds(60)), null, true, [seconds(60)], { time: 1 }];
      for (const value of odd) {
        const reply = await send(gate.url, { headers: bearer(idp.token({ [name]: value })) });
        expect([value, reply.status]).toEqual([value, 401]);
      }
      const last = { exp: 253_402_300_799, nbf: 0, iat: 1.5 };
      expect((await send(gate.url, { headers: bearer(idp.token(last)) })).status).toBe(200);
    },
  );

  test('jwtAuth without audiences accepts any, and requiredClaims decides which claims there must be', async () => {
    const options = { audiences: undefined, jwtValidationOptions: { requiredClaims: ['sub'] } };
    await using gate = await answeringGateway(single(options));
    const status = async (claims: object): Promise<number> =>
      (await send(gate.url, { headers: bearer(idp.token(claims as Record<string, unknown>)) })).status;
    expect(await status({ aud: 'else', exp: undefined })).toBe(200);
    expect(await status({ sub: undefined })).toBe(401);
  });
});

describe('the token of a request with jwtAuth', () => {
  test('jwtAuth removes a valid token from the request that the backend receives', async () => {
    await using upstream = await httpUpstream((_, response) => response.end('ok'));
    await using gate = await proxyGateway(upstream.address, single({ mode: 'permissive' }));
    await send(gate.url, { headers: bearer(idp.token()) });
    await send(gate.url, { headers: bearer('of-the-backend') });
    const seen = upstream.received.map(({ headers }) => headers.authorization);
    expect(seen).toEqual([undefined, 'Bearer of-the-backend']);
  });

  test.each([
    ['header', { header: { name: 'x-token' } }, (value: string) => ({ headers: { 'x-token': value } })],
    [
      'cookie',
      { cookie: { name: 'jwt' } },
      (value: string) => ({ headers: { cookie: `a=b; jwt=${value}` } }),
    ],
    ['queryParameter', { queryParameter: { name: 'jwt' } }, (value: string) => ({ path: `/?jwt=${value}` })],
  ])('jwtAuth.location names a %s', async (_, location, request) => {
    await using gate = await answeringGateway(single({ location }));
    const { path = '/', headers = {} } = request(idp.token()) as { path?: string; headers?: object };
    expect((await send(gate.url + path, { headers: headers as Record<string, string> })).status).toBe(200);
    expect((await send(gate.url, { headers: bearer(idp.token()) })).status).toBe(401);
    expect([...gate.accessLog, ...gate.log].join('')).not.toContain(idp.token().split('.')[2]);
  });
});

describe('jwtAuth.providers', () => {
  const providers = (): object[] =>
    [idp, other].map((each) => ({ issuer: each.issuer, audiences: [AUDIENCE], jwks: urlOf(each) }));

  test('jwtAuth.providers accepts the tokens of each, and none that one signs for another', async () => {
    await using gate = await answeringGateway({ jwtAuth: { mode: 'strict', providers: providers() } });
    const status = async (value: string): Promise<number> =>
      (await send(gate.url, { headers: bearer(value) })).status;
    expect(await status(idp.token())).toBe(200);
    expect(await status(other.token())).toBe(200);
    expect(await status(other.token({ iss: idp.issuer }))).toBe(401);
    expect(await status(idp.token({ iss: 'https://else.example' }))).toBe(401);
    expect(await status('garbage')).toBe(401);
  });

  test('jwtAuth.providers may list one issuer twice, with different audiences', async () => {
    const [first] = providers();
    const list = [
      { ...first, audiences: ['a'] },
      { ...first, audiences: ['b'] },
    ];
    await using gate = await answeringGateway({ jwtAuth: { mode: 'strict', providers: list } });
    expect((await send(gate.url, { headers: bearer(idp.token({ aud: 'b' })) })).status).toBe(200);
    expect((await send(gate.url, { headers: bearer(idp.token({ aud: 'c' })) })).status).toBe(401);
  });
});

describe('keys of jwtAuth', () => {
  test('jwtAuth reads inline keys', async () => {
    const jwks = JSON.stringify({ keys: [idp.key.jwk] });
    await using gate = await answeringGateway(single({ jwks }));
    expect((await send(gate.url, { headers: bearer(idp.token()) })).status).toBe(200);
  });

  test('jwtAuth reads a file of keys again when it changes', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'keys.json');
    const [old, next] = [signingKey('old'), signingKey('new')];
    writeFileSync(file, JSON.stringify({ keys: [old.jwk] }));
    const yaml = JSON.stringify({
      gateways: {
        default: {
          port: 0,
          routes: [{ policies: { directResponse: { body: 'reached' }, ...single({ jwks: { file } }) } }],
        },
      },
    });
    await using gate = await gateway(yaml, { folder: folder.path, live: 'watched' });
    const status = async (key: typeof old): Promise<number> =>
      (await send(gate.url, { headers: bearer(token(key, idp.claims())) })).status;
    expect(await status(old)).toBe(200);
    writeFileSync(file, JSON.stringify({ keys: [next.jwk] }));
    await until(async () => (await status(next)) === 200);
    expect(await status(old)).toBe(401);
  });
});

describe('jwtAuth of a gateway', () => {
  test('jwtAuth of a gateway runs before routing, and its routes read `jwt`', async () => {
    const yaml = JSON.stringify({
      gateways: {
        default: {
          port: 0,
          ...single(),
          routes: [
            {
              policies: {
                directResponse: { body: 'reached' },
                authorization: { rules: ['jwt.sub == "alice"'] },
              },
            },
          ],
        },
      },
    });
    await using gate = await gateway(yaml);
    expect((await send(gate.url)).status).toBe(401);
    expect((await send(gate.url, { headers: bearer(idp.token()) })).status).toBe(200);
    expect((await send(gate.url, { headers: bearer(idp.token({ sub: 'bob' })) })).status).toBe(403);
    expect(gate.log.join('')).not.toContain('reads `jwt`');
  });
});

describe('jwtAuth configuration', () => {
  test.each([
    ['no issuer', { issuer: undefined }, /expected `issuer`, or `providers`/],
    ['no keys of an issuer that is no URL', { issuer: 'ci', jwks: undefined }, /expected `jwks`/],
    [
      'an issuer beside providers',
      { providers: [{ issuer: 'a', jwks: '{"keys":[]}' }] },
      /issuer.*providers/,
    ],
    ['an empty list of providers', { providers: [] }, /providers/],
    ['keys that are not JSON', { jwks: 'keys' }, /the key set is not valid JSON/],
    ['a file that is not there', { jwks: { file: '/nowhere/keys.json' } }, /file not found: \/nowhere/],
    ['a key that it does not know', { algorithms: ['RS256'] }, /algorithms/],
  ])('jwtAuth with %s is refused', async (_, more, expected) => {
    await expect(answeringGateway(single(more))).rejects.toThrow(expected);
  });
});
