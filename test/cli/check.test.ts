import { mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cli, inheritedEnv } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { AUDIENCE, type Idp, startIdp } from '../kit/idp.ts';
import { busyPort, freePort } from '../kit/ports.ts';
import { service } from '../kit/process.ts';
import { httpUpstream, refusingPort } from '../kit/upstream.ts';

interface Finding {
  readonly group: string;
  readonly status: string;
  readonly message: string;
  readonly fix?: string;
}

let idp: Idp;
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
beforeAll(async () => {
  idp = await startIdp();
  folder = await temporaryFolder();
});
afterAll(async () => {
  await idp[Symbol.asyncDispose]();
  await folder.remove();
});

interface Scene {
  readonly issuer?: string;
  /** Additional or replaced members of the policy. */
  readonly policy?: object;
  readonly port?: number;
  readonly targets?: readonly object[];
  readonly token?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs `agctl check` on a configuration with one protected route. */
async function check(scene: Scene = {}): Promise<{ code: number | null; all: Finding[]; failed: Finding[] }> {
  const { issuer = idp.issuer, policy = {}, port = 0, targets, token, args = [], env = {} } = scene;
  const policies = {
    mcpAuthentication: {
      issuer,
      audiences: [AUDIENCE],
      provider: { idpx: {} },
      resourceMetadata: { resource: 'http://localhost:3000/mcp' },
      ...policy,
    },
  };
  const mcp = { targets: targets ?? [{ name: 'a', stdio: { cmd: process.execPath } }] };
  const file = join(folder.path, 'config.yaml');
  const routes = [{ backends: [{ mcp }], policies }];
  writeFileSync(file, JSON.stringify({ gateways: { default: { port } }, routes }));
  const tokenFile = join(folder.path, 'token');
  if (token !== undefined) writeFileSync(tokenFile, token);
  const more = token === undefined ? [] : ['--token-file', tokenFile];
  const { code, stdout } = await cli(['check', '-f', file, '-o', 'json', ...more, ...args], {
    env: { ...inheritedEnv(), ...env },
  });
  const all = JSON.parse(stdout).checks as Finding[];
  return { code, all, failed: all.filter(({ status }) => status === 'fail') };
}

/** An error response in the wording of providers with realms. */
const refusal = (status: number, error: string, description: string) => ({
  status,
  body: JSON.stringify({ error, error_description: description }),
});

/** Makes an endpoint of the provider refuse requests while `run` runs. */
async function refusing<T>(
  endpoint: 'registration' | 'certs' | 'openid-configuration',
  { status, body }: { status: number; body: string },
  run: () => Promise<T>,
): Promise<T> {
  idp.answers.set(endpoint, (_, response) => response.writeHead(status).end(body));
  try {
    return await run();
  } finally {
    idp.answers.delete(endpoint);
  }
}

/** A gateway on any free port. */
const SOME_PORT =
  'gateways: { default: { port: 0, address: 127.0.0.1, routes: [{ policies: { directResponse: {} } }] } }\n';

describe('agctl check', () => {
  test('check exits with 0 for a correct configuration and does not send the token anywhere', async () => {
    const token = idp.token();
    const { code, failed, all } = await check({ token });
    expect([code, failed]).toEqual([0, []]);
    const messages = all.map(({ message }) => message);
    expect(messages).toContain('metadata: the issuer matches the configuration');
    expect(messages).toContain('token: issuer, audience and times are accepted');
    expect(JSON.stringify(idp.upstream.received)).not.toContain(token);
  });

  test("check reports an issuer with another host name than the provider's", async () => {
    const { code, failed } = await check({ issuer: idp.issuer.replace('127.0.0.1', 'localhost') });
    expect(code).toBe(1);
    expect(failed).toHaveLength(1);
    expect(failed[0]?.message).toContain(`the provider's issuer is ${idp.issuer}`);
    expect(failed[0]?.fix).toContain('use one host name');
  });

  test('check reports an unreachable provider as one problem', async () => {
    const { failed } = await check({ issuer: `http://127.0.0.1:${await refusingPort()}/realms/main` });
    expect(failed).toHaveLength(1);
    expect(failed[0]?.fix).toBe('is the provider running, and is `issuer` correct?');
  });

  test('check reports missing signing keys', async () => {
    const { failed } = await refusing('certs', { status: 404, body: '' }, () => check());
    expect(failed).toMatchObject([
      { group: 'idp', fix: 'set `jwks` to the URL where the provider publishes its keys' },
    ]);
  });

  test('check names the variable for an issuer whose certificate is of an unknown authority', async () => {
    await using server = await httpUpstream(undefined, { certificate: 'good' });
    const { port } = new URL(`https://${server.address}`);
    const { failed } = await check({ issuer: `https://localhost:${port}/realms/main` });
    expect(failed[0]?.fix).toContain('NODE_EXTRA_CA_CERTS');
  });

  test('check finds the keys of an issuer of no known kind by its metadata', async () => {
    const { failed, all } = await check({ policy: { provider: undefined } });
    expect(failed).toEqual([]);
    const url = `${idp.issuer}/protocol/openid-connect/certs`;
    expect(all).toContainEqual({ group: 'idp', status: 'ok', message: `keys: 1 signing key at ${url}` });
  });

  test('check reports signing keys at another address, with the requested URL and the one in the metadata', async () => {
    const { failed } = await check({ policy: { provider: { auth0: {} } } });
    expect(failed).toEqual([
      {
        group: 'idp',
        status: 'fail',
        message: `keys: ${idp.issuer}/.well-known/jwks.json answered 404`,
        fix: `the provider publishes its keys elsewhere: set \`jwks: { url: ${idp.issuer}/protocol/openid-connect/certs }\``,
      },
    ]);
  });

  test('check also tests a configured jwks URL', async () => {
    const url = `${idp.issuer}/protocol/openid-connect/certs`;
    const { all } = await check({ policy: { provider: undefined, jwks: { url } } });
    expect(all).toContainEqual({ group: 'idp', status: 'ok', message: `keys: 1 signing key at ${url}` });
    const { failed } = await check({ policy: { jwks: { url: `${url}/old` } } });
    expect(failed).toMatchObject([{ fix: expect.stringContaining(`set \`jwks: { url: ${url} }\``) }]);
  });

  test('check only warns about unavailable metadata when the signing keys come from a file', async () => {
    writeFileSync(join(folder.path, 'keys.json'), JSON.stringify({ keys: idp.published }));
    const issuer = `http://127.0.0.1:${await refusingPort()}/realms/main`;
    const { code, all } = await check({ issuer, policy: { jwks: { file: 'keys.json' } } });
    expect(code).toBe(0);
    expect(all.filter(({ group, status }) => group === 'idp' && status === 'warn')).toMatchObject([
      { message: expect.stringContaining('metadata: '), fix: expect.stringContaining('still validated') },
    ]);
  });

  test('check reports a token for another audience of a provider with RFC 8414 metadata', async () => {
    const { failed } = await check({
      token: idp.token({ aud: 'account' }),
      policy: { provider: undefined, jwks: { url: `${idp.issuer}/protocol/openid-connect/certs` } },
    });
    expect(failed).toMatchObject([{ fix: expect.stringContaining('to `audiences`') }]);
    expect(failed[0]?.fix).not.toContain('mapper');
  });

  test.each(['Bearer ', 'authorization: bearer '])(
    'check ignores the prefix `%s` of a saved token',
    async (before) => {
      const { all } = await check({ token: `${before}${idp.token()}\n` });
      expect(all.map(({ message }) => message)).toContain('token: issuer, audience and times are accepted');
    },
  );

  test('check reports a token for the audience `account`', async () => {
    const { failed } = await check({ token: idp.token({ aud: 'account' }) });
    expect(failed[0]?.message).toContain("audience is 'account'");
    expect(failed[0]?.fix).toContain('audience mapper');
  });

  test('check reports a token with trailing characters', async () => {
    const { failed } = await check({ token: `${idp.token()}",` });
    expect(failed).toMatchObject([
      {
        message: 'token: the token signature is not valid base64url',
        fix: 'use the access token of the provider, on a single line',
      },
    ]);
  });

  test('check reports a provider that requires HTTPS', async () => {
    const { failed } = await refusing(
      'openid-configuration',
      refusal(403, 'invalid_request', 'HTTPS required'),
      () => check(),
    );
    expect(failed[0]?.fix).toContain('sslRequired to NONE');
  });

  test('check reports a client registration that a provider policy rejects', async () => {
    const description =
      "Policy 'Trusted Hosts' rejected request to client-registration service. Details: Host not trusted.";
    const { failed } = await refusing('registration', refusal(403, 'insufficient_scope', description), () =>
      check({ args: ['--probe-registration'] }),
    );
    expect(failed[0]?.message).toContain('Trusted Hosts');
    expect(failed[0]?.fix).toContain('keep client-uris-must-match on');
  });

  test('check --login-user requires --login-client and a password variable, and the password is never printed', async () => {
    const env = { LOGIN_PASSWORD: 'hunter2-hunter2' };
    const login = ['--login-user', 'ann', '--login-client', 'cli', '--login-password-env', 'LOGIN_PASSWORD'];
    const { failed } = await check({ args: login, env });
    expect(JSON.stringify(failed)).not.toContain('hunter2');
    const file = join(folder.path, 'config.yaml');
    const { code, stderr } = await cli(['check', '-f', file, '--login-user', 'ann']);
    expect([code, stderr]).toEqual([2, expect.stringContaining('--login-user requires --login-client')]);
  });

  test('check reports missing commands, unreachable servers and ports in use', async () => {
    await using busy = await busyPort();
    await using stats = await busyPort('127.0.0.1');
    await using readiness = await busyPort('::1');
    const closed = await refusingPort();
    const { failed, code } = await check({
      port: busy.port,
      // The other address of localhost.
      env: { STATS_ADDR: `127.0.0.1:${stats.port}`, READINESS_ADDR: `localhost:${readiness.port}` },
      targets: [
        { name: 'gone', stdio: { cmd: 'no-such-command' } },
        { name: 'far', mcp: { host: `http://127.0.0.1:${closed}/mcp` } },
        { name: 'old', sse: { host: `127.0.0.1:${closed}` } },
        {
          name: 'api',
          openapi: {
            host: `http://127.0.0.1:${closed}`,
            schema: '{"openapi":"3.0.0","paths":{"/a":{"get":{}}}}',
          },
        },
        { name: 'near', mcp: { host: `${idp.origin}/mcp` } },
      ],
    });
    expect(code).toBe(1);
    expect(failed.map(({ message }) => message)).toEqual([
      `${busy.port} (gateway default) is in use`,
      `${stats.port} (stats) is in use`,
      `${readiness.port} (readiness) is in use`,
      'gone   command not found: no-such-command',
      ...['far', 'old', 'api'].map((name) =>
        expect.stringMatching(new RegExp(`^${name}   127.0.0.1:${closed}: .*ECONNREFUSED`)),
      ),
    ]);
  });

  test('check notes that its own gateway runs, and names the gateway of another file that has the port', async () => {
    const [port, adminPort] = [await freePort(), await freePort()];
    const config = { adminAddr: `127.0.0.1:${adminPort}` };
    const gateways = { default: { port, address: '127.0.0.1' } };
    for (const name of ['own.yaml', 'another.yaml'])
      writeFileSync(join(folder.path, name), JSON.stringify({ config, gateways }));
    const env = { ...inheritedEnv(), ADMIN_ADDR: '' };
    await using gateway = await service(['serve', '-f', 'own.yaml'], { cwd: folder.path, env });
    const checked = (name: string) =>
      cli(['check', '-f', name, '--only', 'ports'], { cwd: folder.path, env });
    const own = await checked('own.yaml');
    expect(gateway.stderr).toContain('own.yaml');
    expect([own.code, own.stdout]).toEqual([
      0,
      expect.stringMatching(
        new RegExp(
          `– ${port} \\(gateway default\\) is in use by the gateway of own\\.yaml \\(pid \\d+\\), which is running already .*\n {2}– ${adminPort} \\(admin\\) is in use by the gateway of own`,
        ),
      ),
    ]);
    const elsewhere = ['check', '-f', join(folder.path, 'own.yaml'), '--only', 'ports'];
    expect((await cli(elsewhere, { env })).code).toBe(0);
    // A file of the same name in another folder is that of another gateway, which must not be taken for this one.
    const copy = join(folder.path, 'copy');
    mkdirSync(copy);
    writeFileSync(join(copy, 'own.yaml'), JSON.stringify({ config, gateways }));
    const copied = await cli(['check', '-f', 'own.yaml', '--only', 'ports'], { cwd: copy, env });
    expect([copied.code, copied.stdout]).toEqual([1, expect.stringContaining('fix: stop it, or change')]);
    expect(copied.stdout).not.toContain('shutdown');
    const path = realpathSync(join(folder.path, 'own.yaml'));
    writeFileSync(join(copy, 'gateway.yaml'), JSON.stringify({ config }));
    const asked = await cli(['proxy', 'log'], { cwd: copy, env });
    expect([asked.stdout, asked.stderr]).toEqual([
      expect.stringContaining('current log level'),
      expect.stringMatching(
        new RegExp(
          `^warning: 127\\.0\\.0\\.1:${adminPort} is the gateway of ${path} \\(pid \\d+\\), not that of \\S+/copy/gateway\\.yaml: --admin`,
        ),
      ),
    ]);
    const stopped = await cli(['proxy', 'shutdown'], { cwd: copy, env });
    expect([stopped.code, stopped.stderr]).toEqual([2, expect.stringContaining('stops it anyway')]);
    const named = ['usage', '-f', join(folder.path, 'own.yaml')];
    expect((await cli(named, { cwd: copy, env })).stderr).not.toContain('warning');
    const another = await checked('another.yaml');
    expect([another.code, another.stdout]).toEqual([
      1,
      expect.stringMatching(
        `✗ ${port} \\(gateway default\\) is in use by the gateway of \\S+/own\\.yaml \\(pid \\d+\\)\n +fix: stop it, or change gateways.default.port\n`,
      ),
    ]);
  });

  test('a port for metrics belongs to the gateway that runs only if that has opened it', async () => {
    await using busy = await busyPort();
    const [adminPort, statsPort] = [await freePort(), await freePort()];
    writeFileSync(
      join(folder.path, 'stats.yaml'),
      `config: { adminAddr: "127.0.0.1:${adminPort}" }\n${SOME_PORT}`,
    );
    const env = {
      ...inheritedEnv(),
      ADMIN_ADDR: '',
      READINESS_ADDR: 'off',
      STATS_ADDR: `127.0.0.1:${statsPort}`,
    };
    await using _gateway = await service(['serve', '-f', 'stats.yaml'], { cwd: folder.path, env });
    const checked = async (stats: number): Promise<string> => {
      const options = { cwd: folder.path, env: { ...env, STATS_ADDR: `127.0.0.1:${stats}` } };
      return (await cli(['check', '-f', 'stats.yaml', '--only', 'ports'], options)).stdout;
    };
    expect(await checked(statsPort)).toMatch(
      new RegExp(
        `– ${statsPort} \\(stats\\) is in use by the gateway of stats\\.yaml \\(pid \\d+\\), which is running`,
      ),
    );
    expect(await checked(busy.port)).toContain(
      `✗ ${busy.port} (stats) is in use\n      fix: stop the process that uses it, or change config.statsAddr\n`,
    );
  });

  test('check names the configuration key of a port in use', async () => {
    await using busy = await busyPort();
    const { port } = busy;
    const file = join(folder.path, 'llm.yaml');
    const config = { adminAddr: 'off', statsAddr: 'off', readinessAddr: 'off' };
    const models = [{ name: '*', provider: 'echo' }];
    writeFileSync(file, JSON.stringify({ config, llm: { port, models } }));
    const { stdout } = await cli(['check', '-f', file, '--only', 'ports', '-o', 'json']);
    expect(JSON.parse(stdout).checks).toEqual([
      {
        group: 'ports',
        status: 'fail',
        message: `${port} (gateway llm) is in use`,
        fix: 'stop the process that uses it, or change llm.port; this is expected if the gateway is already running',
      },
    ]);
  });

  test('check --only reports an invalid configuration although its group is not selected', async () => {
    const file = join(folder.path, 'invalid.yaml');
    writeFileSync(file, 'gateways: { default: { prt: 3000 } }');
    const { code, stdout } = await cli(['check', '-f', file, '-o', 'json', '--only', 'ports,targets']);
    const { checks } = JSON.parse(stdout) as { checks: Finding[] };
    expect(code).toBe(1);
    expect(checks.filter(({ status }) => status === 'fail')).toEqual([
      expect.objectContaining({ group: 'config', message: expect.stringContaining('prt') as string }),
    ]);
  });

  test('check --offline contacts nobody, --only runs the named checks, and unknown names are rejected', async () => {
    const before = idp.upstream.received.length;
    const { all } = await check({ args: ['--offline', '--only', 'idp,targets'] });
    expect(new Set(all.map(({ group }) => group))).toEqual(new Set(['idp', 'targets']));
    expect(idp.upstream.received).toHaveLength(before);
    const { code, stderr } = await cli(['check', '-f', join(folder.path, 'config.yaml'), '--only', 'nope']);
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining(
        'groups: environment, config, ports, targets, tools, contract, llm, idp, shared',
      ),
    ]);
  });
});

test('check -o github writes annotations that no value of the file can leave', async () => {
  const name = 'a,b:c%.yaml';
  const file = join(folder.path, name);
  const text = 'x%0A::error::y';
  writeFileSync(
    file,
    `gateways: { default: { port: 0 } }\nroutes:\n  - ${JSON.stringify(text)}: 1\n    backends: [{ mcp: { targets: [{ name: a, stdio: { cmd: no-such-command-0 } }] } }]\n`,
  );
  const args = ['check', '-f', name, '-o', 'github', '--offline', '--only'];
  const bad = await cli([...args, 'config'], { env: inheritedEnv(), cwd: folder.path });
  expect([bad.code, bad.stdout.trimEnd().split('\n')]).toEqual([
    1,
    [
      expect.stringMatching(
        /^::error file=a%2Cb%3Ac%25\.yaml,line=3,endLine=3,col=5,endColumn=21,title=agctl check%3A config::line 3: .*x%250A::error::y.*%0Afix: /,
      ),
      '1 problem, 0 warnings, 0 ok, 0 skipped',
    ],
  ]);
  writeFileSync(file, (await readFile(file, 'utf8')).replace(`${JSON.stringify(text)}: 1`, 'name: a'));
  const missing = await cli([...args, 'targets'], { env: inheritedEnv(), cwd: folder.path });
  expect(missing.stdout).toMatch(/^::error file=a%2Cb%3Ac%25\.yaml,title=agctl check%3A targets::/);
});
