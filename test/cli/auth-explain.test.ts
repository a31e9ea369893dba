import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { cli } from '../kit/cli.ts';
import { startIdp } from '../kit/idp.ts';
import { agctl } from '../kit/process.ts';
import { seconds, signingKey, token } from '../kit/tokens.ts';

const folder = mkdtempSync(join(tmpdir(), 'agctl-explain-'));
afterAll(() => rmSync(folder, { recursive: true }));
const key = signingKey('k1');
const issuer = 'http://idp.test/realms/r';
const claims = { iss: issuer, aud: 'gw', sub: 'ann', exp: seconds(600), roles: ['reader'] };

const STDIO = [{ name: 'a', stdio: { cmd: 'true' } }];

interface Case {
  readonly authorization?: unknown[];
  readonly items?: unknown[];
  readonly mode?: string;
  /** Additional or replaced members of the policy. */
  readonly policy?: object;
  readonly targets?: readonly object[];
}

type Run = (args: readonly string[]) => Promise<{ code: number | null; stdout: string; stderr: string }>;

/** The output of `auth explain` for a token on routes with these rules, one route per case. */
async function explain(
  cases: readonly Case[],
  { more = {}, header = {}, signer = key, output = 'json', run = cli as Run } = {},
) {
  writeFileSync(join(folder, 'keys.json'), JSON.stringify({ keys: [key.jwk] }));
  const routes = cases.map(({ authorization, items, mode, policy, targets = STDIO }, index) => ({
    name: `r${index}`,
    matches: [{ path: { exact: `/${index}/mcp` } }],
    backends: [{ mcp: { targets } }],
    policies: {
      mcpAuthentication: {
        ...(mode === undefined ? {} : { mode }),
        issuer,
        audiences: ['gw'],
        jwks: { file: 'keys.json' },
        resourceMetadata: { resource: `http://localhost:3000/${index}/mcp` },
        ...policy,
      },
      ...(authorization === undefined ? {} : { authorization: { rules: authorization } }),
      ...(items === undefined ? {} : { mcpAuthorization: { rules: items } }),
    },
  }));
  const file = join(folder, 'config.yaml');
  writeFileSync(file, JSON.stringify({ gateways: { default: { port: 3000 } }, routes }));
  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, token(signer, { ...claims, ...more }, header));
  const { code, stdout, stderr } = await run([
    ...['auth', 'explain', '-f', file, '--token-file', tokenFile, '-o', output],
  ]);
  expect(stderr).toBe('');
  return { code, stdout, verdicts: output === 'json' ? JSON.parse(stdout).verdicts : [] };
}

describe('auth explain', () => {
  test('auth explain lists each route with what its policies do, wherever they are written', async () => {
    writeFileSync(join(folder, 'keys.json'), JSON.stringify({ keys: [key.jwk] }));
    const jwtAuth = { mode: 'strict', issuer, audiences: ['gw'], jwks: { file: 'keys.json' } };
    const policies = {
      token: { jwtAuth },
      other: { jwtAuth: { ...jwtAuth, audiences: ['other'] } },
      mixed: {
        jwtAuth: { ...jwtAuth, mode: 'permissive', audiences: ['other'] },
        apiKey: { mode: 'optional', keys: [{ key: 'k' }] },
      },
      key: { apiKey: { mode: 'strict', keys: [{ key: 'k' }] } },
      password: { basicAuth: { mode: 'strict', htpasswd: 'u:{SHA}0DPiKuNIrrVmD8IUCuw1hQxNqZc=' } },
      open: {},
      ruled: { authorization: { rules: ['jwt.sub == "ann"'] } },
    };
    const routes = Object.entries(policies).map(([name, own]) => ({
      name,
      matches: [{ path: { pathPrefix: `/${name}` } }],
      policies: { ...own, directResponse: {} },
    }));
    const guarded = {
      port: 3001,
      jwtAuth,
      routes: [{ name: 'inner', policies: { ...policies.ruled, directResponse: {} } }],
    };
    const file = join(folder, 'routes.yaml');
    writeFileSync(file, JSON.stringify({ gateways: { default: { port: 3000, routes }, guarded } }));
    const tokenFile = join(folder, 'token');
    writeFileSync(tokenFile, token(key, claims));
    const args = ['auth', 'explain', '-f', file, '--token-file', tokenFile];
    const { code, stdout, stderr } = await cli(args);
    expect(stderr).toBe('');
    const wrong = "audience is 'gw', expected 'other'";
    expect(stdout.split('\n').filter((line) => !line.startsWith('    fix'))).toEqual([
      '✓ default default/token   200   the token is valid, and no rule that reads only the token fails',
      expect.stringContaining('✗ default default/other   401   '),
      expect.stringContaining('✓ default default/mixed   200   '),
      '    policies:',
      expect.stringContaining('      jwtAuth   '),
      '      apiKey   takes a key, and lets requests without it through',
      '✗ default default/key   401   apiKey asks for a key, which the token is not',
      '✗ default default/password   401   basicAuth asks for a password, which the token is not',
      '✓ default default/open   200   no policy reads the token',
      '✗ default default/ruled   403   no policy reads the token, but a require rule is not true: jwt.sub == "ann"',
      '    rules for requests (authorization):',
      expect.stringContaining('      fails'),
      '✓ guarded default/inner   200   the token is valid, and no rule that reads only the token fails',
      '    rules for requests (authorization):',
      '      true     require jwt.sub == "ann"',
      '',
    ]);
    expect(stdout).toContain(wrong);
    // Of the routes that take tokens, one refuses this one.
    expect(code).toBe(1);
  });

  test('auth explain lists a route of a group in each listener that delegates to it', async () => {
    writeFileSync(join(folder, 'keys.json'), JSON.stringify({ keys: [key.jwk] }));
    const file = join(folder, 'listeners.yaml');
    const tokenFile = join(folder, 'token');
    writeFileSync(tokenFile, token(key, claims));
    const jwtAuth = { mode: 'strict', issuer, audiences: ['gw'], jwks: { file: 'keys.json' } };
    const listener = (name: string) => ({ name, hostname: `${name}.example`, protocol: 'HTTP' });
    writeFileSync(
      file,
      JSON.stringify({
        gateways: { default: { port: 3000, listeners: [listener('one'), listener('two')] } },
        routes: [{ name: 'all', backends: [{ routeGroup: 'group' }] }],
        routeGroups: [{ name: 'group', routes: [{ name: 'r', policies: { jwtAuth, directResponse: {} } }] }],
      }),
    );
    const { stdout, stderr } = await cli(['auth', 'explain', '-f', file, '--token-file', tokenFile]);
    expect(stderr).toBe('');
    expect(stdout.match(/^✓ default default\/(?:one|two) default\/r /gm)).toEqual([
      '✓ default default/one default/r ',
      '✓ default default/two default/r ',
    ]);
  });

  test('auth explain fails for a configuration with rules that cannot be compiled', async () => {
    const file = join(folder, 'invalid.yaml');
    const tokenFile = join(folder, 'token');
    writeFileSync(tokenFile, token(key, claims));
    const policies = { authorization: { rules: [{ deny: 'true ==' }] }, directResponse: {} };
    writeFileSync(file, JSON.stringify({ gateways: { default: { port: 3000 } }, routes: [{ policies }] }));
    expect(await cli(['auth', 'explain', '-f', file, '--token-file', tokenFile])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`${file} is not a valid configuration`),
    });
  });

  test('auth explain names what each server gets instead of the token, without secrets', async () => {
    const target = (name: string, backendAuth?: object): object => ({
      name,
      mcp: { host: 'https://mcp.example/mcp' },
      ...(backendAuth && { policies: { backendAuth } }),
    });
    const clientAuth = { clientId: 'g', clientSecret: 's3cret' };
    const at = { host: 'https://idp.example', clientAuth };
    const targets = [
      target('a', { oauthTokenExchange: { ...at, audiences: ['tickets', 'search'] } }),
      target('b', {
        crossAppAccess: { identityProvider: at, resourceAuthorizationServer: at, audience: 'https://as' },
      }),
      target('c', { key: 's3cret' }),
      target('d', { credentials: [{ key: 's3cret', location: { header: { name: 'x' } } }] }),
      target('e'),
    ];
    const credentials = {
      a: 'oauthTokenExchange for tickets, search',
      b: 'crossAppAccess for https://as',
      c: 'key',
      d: 'credentials',
    };
    const { verdicts } = await explain([{ targets }, {}]);
    expect(verdicts.map((verdict: { credentials: object }) => verdict.credentials)).toEqual([
      credentials,
      {},
    ]);
    const { stdout } = await explain([{ targets }], { output: 'text' });
    for (const [name, credential] of Object.entries(credentials))
      expect(stdout).toContain(`      ${name}   ${credential}`);
    expect(stdout).not.toContain('s3cret');
  });

  test.each([
    [
      'another audience',
      { aud: 'account' },
      /audience is 'account', expected 'gw'/,
      /configure the provider to issue tokens for gw/,
    ],
    ['another issuer', { iss: 'http://other' }, /issuer is 'http:\/\/other'/, /host name/],
    ['an old token', { exp: seconds(-600) }, /expired/, /new token/],
  ])('auth explain predicts 401 with the reason and what to do: %s', async (_what, more, reason, fix) => {
    const { code, verdicts } = await explain([{}], { more });
    expect([code, verdicts[0].accepted, verdicts[0].status]).toEqual([1, false, 401]);
    expect(verdicts[0].reason).toMatch(reason);
    expect(verdicts[0].fix).toMatch(fix);
  });

  test.each([
    ['a signature of another key', { signer: signingKey('k1') }, /signature .* not valid/, /did not sign/],
    ['a key that is not in the set', { signer: signingKey('k2') }, /unknown key/, /not in the key set/],
    ['no end', { more: { exp: undefined } }, /no `exp` claim/, /requiredClaims/],
    ['a shared secret', { header: { alg: 'HS256' } }, /algorithm/, /sign with a public key/],
    ['no key named', { header: { kid: undefined } }, /`kid`/, /name the key/],
    [
      'a token that is none for access',
      { header: { typ: 'logout+jwt' } },
      /not an access/,
      /not the ID token/,
    ],
  ])('auth explain says what to do about a token problem: %s', async (_what, options, reason, fix) => {
    const { verdicts } = await explain([{}], options);
    expect(verdicts[0]).toMatchObject({ reason: expect.stringMatching(reason) });
    expect(verdicts[0].fix).toMatch(fix);
  });

  test("auth explain names the address of unavailable keys and the one in the provider's metadata", async () => {
    await using idp = await startIdp();
    const policy = { issuer: idp.issuer, jwks: undefined, provider: { auth0: {} } };
    const { code, verdicts } = await explain([{ policy }], { more: { iss: idp.issuer } });
    expect(code).toBe(1);
    expect(verdicts[0]).toMatchObject({
      status: 503,
      reason: `the keys are not available: ${idp.issuer}/.well-known/jwks.json answered 404`,
      fix: expect.stringContaining(`set \`jwks: { url: ${idp.issuer}/protocol/openid-connect/certs }\``),
    });
  });

  test('auth explain predicts 401 for a token signed by another key, and 200 if the mode permits it', async () => {
    const { code, verdicts } = await explain([{}, { mode: 'permissive' }], { signer: signingKey('k1') });
    expect(code).toBe(1);
    expect(verdicts).toMatchObject([
      { gateway: 'default', route: 'default/r0', accepted: false, status: 401 },
      { gateway: 'default', route: 'default/r1', accepted: true, status: 200 },
    ]);
  });

  test('auth explain evaluates authorization rules as for requests', async () => {
    const bob = 'jwt.sub == "bob"';
    const cases: [string, unknown[], boolean][] = [
      ['a plain rule that holds', ['"reader" in jwt.roles'], true],
      ['a plain rule that does not', ['"writer" in jwt.roles'], false],
      ['one of two allow rules', [{ allow: bob }, { allow: 'jwt.sub == "ann"' }], true],
      ['no allow rule', [{ allow: bob }], false],
      ['an allow rule left to the request', [{ allow: bob }, { allow: 'request.path == "/x"' }], true],
      ['a deny rule that is false', [{ deny: bob }], true],
      ['a deny rule that is true', [{ deny: 'jwt.sub == "ann"' }], false],
      ['a deny rule that fails', [{ deny: 'jwt.nothing == 1' }], false],
      ['a require rule that fails', [{ require: 'jwt.nothing == 1' }], false],
      [
        'a rule that the token decides alone',
        [{ require: 'request.path == "/x" && jwt.sub == "bob"' }],
        false,
      ],
      ['a deny rule of the same kind', [{ deny: 'request.path == "/x" || jwt.sub == "ann"' }], false],
      ['a rule that another path may meet', [{ require: 'request.path == "/x" || jwt.sub == "bob"' }], true],
      ['a deny rule about a missing claim', [{ deny: 'request.path == "/x" && jwt.nothing == 1' }], true],
    ];
    const { verdicts } = await explain(cases.map(([, authorization]) => ({ authorization })));
    for (const [index, [what, , accepted]] of cases.entries())
      expect(verdicts[index], what).toMatchObject({ accepted, status: accepted ? 200 : 403 });
  });

  test('auth explain evaluates the rules of mcpAuthorization that read only the token', async () => {
    const items = ['jwt.sub == "bob"', 'mcp.tool.name == "echo" && jwt.sub == "ann"'];
    const { code, verdicts } = await explain([{ items }, { items: items.slice(0, 1) }]);
    expect(code).toBe(1);
    expect(verdicts[0]).toMatchObject({
      accepted: true,
      items: [
        { effect: 'allow', rule: items[0], result: 'false' },
        { effect: 'allow', rule: items[1], result: 'depends on the request' },
      ],
    });
    expect(verdicts[1]).toMatchObject({
      accepted: false,
      status: 200,
      reason: 'the token is valid, but every tool, prompt and resource is hidden: no allow rule is true',
    });
  });

  test('auth explain prints a line per route and a line per rule as text', async () => {
    const { code, stdout } = await explain([{ authorization: ['jwt.sub == "ann"'] }], {
      output: 'text',
      run: agctl,
    });
    expect([code, stdout]).toEqual([
      0,
      '✓ default default/r0   200   the token is valid, and no rule that reads only the token fails\n' +
        '    rules for requests (authorization):\n' +
        '      true     require jwt.sub == "ann"\n',
    ]);
  });
});
