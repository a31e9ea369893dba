import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Idp, startIdp } from '../../../kit/idp.ts';
import type { HttpReply } from '../../../kit/send.ts';
import { call, METADATA_URL, protectedGateway, signIn } from '../../../kit/sign-in.ts';

let idp: Idp;
beforeAll(async () => {
  idp = await startIdp();
});
afterAll(() => idp.upstream.close());

/** Responses to tokens with these claims, or without a token, under these rules. */
async function under(rules: unknown[], ...claims: (object | undefined)[]): Promise<HttpReply[]> {
  const policies = { ...signIn(idp.issuer, { mode: 'optional' }), authorization: { rules } };
  await using guarded = await protectedGateway([{ policies }]);
  const replies = [];
  for (const more of claims)
    replies.push(await call(guarded, more === undefined ? undefined : idp.token({ ...more })));
  return replies;
}

const statuses = (replies: readonly HttpReply[]): number[] => replies.map(({ status }) => status);

describe('authorization rules on claims', () => {
  test('authorization decides by a role in the token', async () => {
    const replies = await under(
      ['"reader" in jwt.realm_access.roles'],
      { realm_access: { roles: ['writer', 'reader'] } },
      { realm_access: { roles: ['writer'] } },
      undefined,
    );
    expect(statuses(replies)).toEqual([200, 403, 403]);
    expect(replies[1]).toMatchObject({ status: 403, text: 'authorization failed' });
    // Another token would not have the role either, so there is no challenge.
    expect(replies[1]?.headers).not.toHaveProperty('www-authenticate');
  });

  test('authorization rejects without a failure when the claim has an unexpected type', async () => {
    const odd = [undefined, null, 'reader', 7, {}, { roles: null }, { roles: { reader: 1 } }];
    const replies = await under(
      ['"reader" in jwt.realm_access.roles'],
      ...odd.map((realm_access) => ({ realm_access })),
    );
    // In CEL, `in` on a map tests its keys.
    expect(statuses(replies)).toEqual([403, 403, 403, 403, 403, 403, 200]);
  });

  test('authorization rules can read claims named like Object.prototype members', async () => {
    const replies = await under(
      ['jwt.constructor == "a" && !has(jwt.toString) && !has(jwt.hasOwnProperty)'],
      { constructor: 'a' },
      {},
    );
    expect(statuses(replies)).toEqual([200, 403]);
  });

  test('authorization rules see integral claims as int', async () => {
    const replies = await under(['jwt.level + 1 == 4 && jwt.exp > 0'], { level: 3 }, { level: 2 });
    expect(statuses(replies)).toEqual([200, 403]);
  });
});

describe('authorization rules on scopes', () => {
  test.each([
    ['jwt.scope.split(" ").exists(s, s == "write")', 'write'],
    ["'write' in jwt.scope.split(' ')", 'write'],
    ['"read" in jwt.scope.split(" ") && "write" in jwt.scope.split(" ")', 'read write'],
    ['"write" in jwt.scp', 'write'],
  ])('authorization requests the scopes that a rule needs: %s', async (rule, scope) => {
    const [reply] = await under([rule], { scope: 'openid', scp: [] });
    expect(reply?.status).toBe(403);
    expect(reply?.text).toBe('authorization failed');
    expect(reply?.headers['www-authenticate']).toBe(
      `Bearer error="insufficient_scope", scope="${scope}", resource_metadata="${METADATA_URL}"`,
    );
  });

  test('authorization does not request a scope that the resource does not offer', async () => {
    const [reply] = await under(['"admin" in jwt.scope.split(" ")'], { scope: 'openid' });
    expect(reply?.headers['www-authenticate']).toBe(
      `Bearer error="insufficient_scope", resource_metadata="${METADATA_URL}"`,
    );
  });

  test('authorization requests no scope of a request without a token', async () => {
    const [reply] = await under(['"write" in jwt.scope.split(" ")'], undefined);
    expect(reply?.status).toBe(403);
    expect(reply?.headers).not.toHaveProperty('www-authenticate');
  });

  test('authorization passes a token that has the required scope', async () => {
    const [reply] = await under(['"write" in jwt.scope.split(" ")'], { scope: 'openid write' });
    expect(reply?.status).toBe(200);
  });
});
