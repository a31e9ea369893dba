import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chaos } from '../../kit/config.ts';
import { type Idp, startIdp } from '../../kit/idp.ts';
import { openSession } from '../../kit/mcp.ts';
import { call, protectedGateway, signIn } from '../../kit/sign-in.ts';

/** `in` over claims: identity providers write a list of one role as a plain string. */

let idp: Idp;
beforeAll(async () => {
  idp = await startIdp();
});
afterAll(() => idp.upstream.close());

/** Statuses of calls with tokens of these claims under these rules. */
async function under(rules: readonly unknown[], ...claims: readonly object[]): Promise<number[]> {
  const policies = { ...signIn(idp.issuer), authorization: { rules } };
  await using guarded = await protectedGateway([{ policies }]);
  const statuses = [];
  for (const more of claims) statuses.push((await call(guarded, idp.token({ ...more }))).status);
  return statuses;
}

describe('the `in` operator on claims', () => {
  test('`in` on a string claim matches the whole string only', async () => {
    const claims = [{ roles: 'superadmin' }, { roles: 'admin' }, { roles: ['user', 'admin'] }, { roles: [] }];
    expect(await under(['"admin" in jwt.roles'], ...claims)).toEqual([403, 200, 200, 403]);
  });

  test.each([
    ['nested', '"admin" in jwt.realm_access.roles'],
    ['in brackets', '"admin" in jwt["realm_access"]["roles"]'],
    ['by a computed name', '"admin" in jwt.realm_access["ro" + "les"]'],
    ['with a default', '"admin" in default(jwt.realm_access.roles, [])'],
    ['with an empty string as the default', '"admin" in default(jwt.realm_access.roles, "")'],
    ['as an optional', '"admin" in jwt.?realm_access.?roles.orValue([])'],
    ['chosen by a condition', '"admin" in (has(jwt.realm_access.roles) ? jwt.realm_access.roles : [])'],
    ['under another name', 'jwt.realm_access.roles.with(r, "admin" in r)'],
    ['below another name', 'cel.bind(r, jwt.realm_access, "admin" in r.roles)'],
    ['inside a loop over names', 'jwt.clients.exists(c, "admin" in jwt.clients[c].roles)'],
    ['of the items of a loop', 'jwt.tenants.exists(t, "admin" in t.roles)'],
  ])('`in` on a claim %s matches the whole string only', async (_how, rule) => {
    const claims = (roles: unknown) => ({
      realm_access: { roles },
      clients: { one: { roles } },
      tenants: [{ roles }],
    });
    expect(await under([rule], claims('superadmin'), claims('admin'), claims(['admin']))).toEqual([
      403, 200, 200,
    ]);
  });

  test('`in` on a string claim matches the whole string in deny rules', async () => {
    const rules = [{ deny: '"guest" in jwt.roles' }];
    expect(await under(rules, { roles: 'guest' }, { roles: 'guests' }, { roles: ['guest'] })).toEqual([
      403, 200, 403,
    ]);
  });

  test('`in` leaves the claim a string for other operators in this and other expressions', async () => {
    const rules = [
      '!("write" in jwt.scope) && jwt.scope.contains("write")',
      'jwt.scope.split(" ").size() == 2 && "write" in jwt.scope.split(" ") && type(jwt.scope) == string',
    ];
    expect(await under(rules, { scope: 'read write' })).toEqual([200]);
  });
});

describe('the `in` operator on other strings', () => {
  test('`in` on a string that is not a claim is an evaluation error and rejects, also in deny rules', async () => {
    expect(await under(['"m" in request.path'], {})).toEqual([403]);
    expect(await under([{ deny: '"nothing" in request.path' }], {})).toEqual([403]);
    expect(await under(['request.path.contains("m")'], {})).toEqual([200]);
    // The loop variable is a name here, not a claim.
    expect(await under([{ deny: '{"xa": 1}.exists(k, "b" in k)' }], {})).toEqual([403]);
  });
});

test('`in` on a string claim matches the whole string in mcpAuthorization rules', async () => {
  const policies = {
    ...signIn(idp.issuer),
    mcpAuthorization: {
      rules: [
        'mcp.tool.name == "read" && "reader" in jwt.roles',
        'mcp.tool.name == "write" && "read" in jwt.roles',
      ],
    },
  };
  const backends = [{ mcp: { targets: [chaos('one', '--tools=read,write')] } }];
  await using guarded = await protectedGateway([{ policies, backends }]);
  const token = idp.token({ roles: 'reader' });
  const session = await openSession(`${guarded.url}/mcp`, { authorization: `Bearer ${token}` });
  const { tools } = (await session.request('tools/list')).result;
  expect(tools.map(({ name }: { name: string }) => name)).toEqual(['read']);
  await session.end();
});

test('`in` on a string claim matches the whole string in bodyExpression and accessLog.add', async () => {
  const expression = '{"super": "super" in jwt.roles, "whole": "superuser" in jwt.roles, "claim": jwt.roles}';
  const policies = { ...signIn(idp.issuer), directResponse: { bodyExpression: expression } };
  const frontendPolicies = { accessLog: { add: { super: '"super" in jwt.roles', claim: 'jwt.roles' } } };
  await using guarded = await protectedGateway([{ policies }], { more: { frontendPolicies } });
  const { text } = await call(guarded, idp.token({ roles: 'superuser' }));
  expect(JSON.parse(text)).toEqual({ super: false, whole: true, claim: 'superuser' });
  expect(await guarded.accessLine(1)).toMatchObject({ super: 'false', claim: 'superuser' });
});
