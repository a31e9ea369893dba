import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TestGateway } from '../../../kit/gateway.ts';
import { type Idp, startIdp } from '../../../kit/idp.ts';
import { call, METADATA_URL, protectedGateway, signIn } from '../../../kit/sign-in.ts';
import { seconds } from '../../../kit/tokens.ts';
import { refusingPort } from '../../../kit/upstream.ts';
import { watchedRoute } from '../../../kit/watched.ts';

/** Access-log field with the subject of the token that passed. */
const LOG_SUBJECT = { frontendPolicies: { accessLog: { add: { subject: 'default(jwt.sub, "nobody")' } } } };

let idp: Idp;
beforeAll(async () => {
  idp = await startIdp();
});
afterAll(() => idp.upstream.close());

/** Status of a request, and the subject that rules and logs read. */
async function outcome(guarded: TestGateway, bearer?: string): Promise<string> {
  const count = guarded.accessLog.length + 1;
  const { status } = await call(guarded, bearer);
  return `${status} ${(await guarded.accessLine(count))['subject']}`;
}

describe('mcpAuthentication.mode', () => {
  test.each([
    ['strict', ['401 nobody', '401 nobody', '200 alice']],
    ['optional', ['200 nobody', '401 nobody', '200 alice']],
    ['permissive', ['200 nobody', '200 nobody', '200 alice']],
  ])(
    'mcpAuthentication mode %s decides on a missing, an invalid and a valid token',
    async (mode, expected) => {
      await using guarded = await protectedGateway([{ policies: signIn(idp.issuer, { mode }) }], {
        more: LOG_SUBJECT,
      });
      const outcomes = [
        await outcome(guarded),
        await outcome(guarded, idp.token({ exp: seconds(-100) })),
        await outcome(guarded, idp.token()),
      ];
      expect(outcomes).toEqual(expected);
    },
  );

  test.each([
    ['strict', ['401 nobody', '503 nobody']],
    ['optional', ['200 nobody', '503 nobody']],
    ['permissive', ['200 nobody', '200 nobody']],
  ])(
    'mcpAuthentication mode %s decides on a missing token and one that cannot be verified',
    async (mode, expected) => {
      const issuer = `http://127.0.0.1:${await refusingPort()}/realms/main`;
      await using guarded = await protectedGateway([{ policies: signIn(issuer, { mode }) }], {
        more: LOG_SUBJECT,
      });
      const outcomes = [await outcome(guarded), await outcome(guarded, idp.token({ iss: issuer }))];
      expect(outcomes).toEqual(expected);
    },
  );

  test('mcpAuthentication.mode defaults to strict', async () => {
    await using guarded = await protectedGateway([{ policies: signIn(idp.issuer, { mode: undefined }) }]);
    expect((await call(guarded)).status).toBe(401);
  });

  test('mcpAuthentication.mode rejects an unknown value', async () => {
    await expect(protectedGateway([{ policies: signIn(idp.issuer, { mode: 'lax' }) }])).rejects.toThrow(
      /mode/,
    );
  });
});

describe('required mcpAuthentication configuration', () => {
  test.each([
    ['an issuer', { issuer: undefined }, 'mcpAuthentication'],
    ['an issuer that is a web address', { issuer: 'idp.example' }, 'issuer'],
    ['audiences', { audiences: undefined }, 'mcpAuthentication'],
    ['one audience at least', { audiences: [] }, 'audiences'],
    ['one kind of provider at most', { provider: { idpx: {}, keycloak: {} } }, 'provider'],
    ['a kind of provider that it knows', { provider: { other: {} } }, 'provider'],
    ['a provider without fields', { provider: { idpx: { realm: 'x' } } }, 'provider.idpx'],
    [
      'required claims that it knows',
      { jwtValidationOptions: { requiredClaims: ['jti'] } },
      'requiredClaims',
    ],
    ['one place for the token', { authorizationLocation: {} }, 'authorizationLocation'],
    ['a resource that is a web address', { resourceMetadata: { resource: '/mcp' } }, 'resource'],
  ])('mcpAuthentication requires %s', async (_, more, key) => {
    await expect(
      protectedGateway([{ policies: signIn('http://idp.example/realms/x', more) }]),
    ).rejects.toThrow(new RegExp(`policies\\.mcpAuthentication.*${key}|policies\\.${key}`));
  });
});

describe('mcpAuthentication.requiredClaims', () => {
  const statuses = async (requiredClaims: string[] | undefined, ...tokens: string[]): Promise<number[]> => {
    const jwtValidationOptions = requiredClaims === undefined ? {} : { requiredClaims };
    await using guarded = await protectedGateway([
      { policies: signIn(idp.issuer, { jwtValidationOptions }) },
    ]);
    const found = [];
    for (const text of tokens) found.push((await call(guarded, text)).status);
    return found;
  };

  test('mcpAuthentication.requiredClaims defaults to exp', async () => {
    expect(await statuses(undefined, idp.token({ sub: undefined }), idp.token({ exp: undefined }))).toEqual([
      200, 401,
    ]);
    expect(await statuses([], idp.token({ exp: undefined }))).toEqual([200]);
  });

  test('mcpAuthentication.requiredClaims accepts exp, nbf, aud, iss and sub', async () => {
    const full = idp.token({ nbf: seconds() });
    const missing = ['exp', 'nbf', 'aud', 'iss', 'sub'].map((name) =>
      idp.token({ nbf: seconds(), [name]: undefined }),
    );
    const all = ['exp', 'nbf', 'aud', 'iss', 'sub'];
    expect(await statuses(all, full, ...missing)).toEqual([200, 401, 401, 401, 401, 401]);
    // A missing `iss` or `aud` never matches, required or not.
    expect(await statuses([], ...missing)).toEqual([200, 200, 401, 401, 200]);
  });
});

describe('mcpAuthentication traces', () => {
  test('mcpAuthentication traces the decision and its reason but never the token', async () => {
    await using watched = await watchedRoute(signIn(idp.issuer, { mode: 'optional' }));
    const good = idp.token();
    const bad = idp.token({ aud: 'other' });
    for (const bearer of [undefined, bad, good]) await call(watched, bearer);
    expect(watched.of('mcpAuthentication')).toEqual([
      expect.objectContaining({ action: 'skip', reason: 'no token; allowed in mode optional' }),
      expect.objectContaining({ action: 'deny', reason: expect.stringContaining("audience is 'other'") }),
      expect.objectContaining({ action: 'apply', snapshot: { sub: 'alice' } }),
    ]);
    const told = JSON.stringify(watched.events);
    for (const text of [good, bad])
      for (const part of text.split('.').slice(1)) expect(told).not.toContain(part);
  });
});

test('mcpAuthentication rejections name the metadata URL and the fault, and are logged with the reason', async () => {
  await using guarded = await protectedGateway([{ policies: signIn(idp.issuer) }]);
  const reply = await call(guarded, idp.token({ iss: 'http://other.example/realms/main' }));
  const told = `the token's issuer is 'http://other.example/realms/main', expected '${idp.issuer}'`;
  expect(JSON.parse(reply.text)).toEqual({ error: 'invalid_token', error_description: told });
  expect(reply.headers['content-type']).toBe('application/json');
  expect(reply.headers['www-authenticate']).toBe(
    `Bearer resource_metadata="${METADATA_URL}", error="invalid_token", error_description="${told}"`,
  );
  expect(await guarded.accessLine(1)).toMatchObject({
    'http.status': '401',
    reason: 'JwtAuth',
    error: 'the token is not valid',
    'error.detail': told,
  });
});

test.each(['"', '\\', '\r\nx-evil: 1', '\u0000', 'é', '\u{1f600}'.repeat(500)])(
  'mcpAuthentication rejections that quote a claim containing %o stay well-formed',
  async (odd) => {
    await using guarded = await protectedGateway([{ policies: signIn(idp.issuer) }]);
    for (const more of [{ iss: odd }, { aud: odd }, { aud: [odd, odd] }, { typ: odd }]) {
      const reply = await call(guarded, idp.token(more));
      expect(reply.status).toBe(401);
      expect(reply.headers).not.toHaveProperty('x-evil');
      expect(reply.headers['www-authenticate']).toMatch(
        /error_description="[\x20-\x21\x23-\x5b\x5d-\x7e]+"$/,
      );
      expect(reply.text.length).toBeLessThan(500);
    }
  },
);
