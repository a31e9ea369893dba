import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cli, inheritedEnv } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { AUDIENCE, type Idp, startIdp } from '../kit/idp.ts';
import { busyPort } from '../kit/ports.ts';
import { agctl } from '../kit/process.ts';
import { refusingPort } from '../kit/upstream.ts';

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
  /** Members that the policy has besides, or instead. */
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

/** An answer of the provider that refuses, as providers with realms word it. */
const refusal = (status: number, error: string, description: string) => ({
  status,
  body: JSON.stringify({ error, error_description: description }),
});

/** Has an endpoint of the provider refuse while something runs. */
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

describe('check', () => {
  test('all is well: 0, and the token is not sent to anybody', async () => {
    const token = idp.token();
    const { code, failed, all } = await check({ token });
    expect([code, failed]).toEqual([0, []]);
    const messages = all.map(({ message }) => message);
    expect(messages).toContain('metadata: the issuer matches the configuration');
    expect(messages).toContain('token: issuer, audience and times are accepted');
    expect(JSON.stringify(idp.upstream.received)).not.toContain(token);
  });

  test('a provider under another name', async () => {
    const { code, failed } = await check({ issuer: idp.issuer.replace('127.0.0.1', 'localhost') });
    expect(code).toBe(1);
    expect(failed).toHaveLength(1);
    expect(failed[0]?.message).toContain(`the provider's issuer is ${idp.issuer}`);
    expect(failed[0]?.fix).toContain('use one host name');
  });

  test('a provider that is down is one problem', async () => {
    const { failed } = await check({ issuer: `http://127.0.0.1:${await refusingPort()}/realms/main` });
    expect(failed).toHaveLength(1);
    expect(failed[0]?.fix).toBe('is the provider running, and is `issuer` correct?');
  });

  test('keys that are not there', async () => {
    const { failed } = await refusing('certs', { status: 404, body: '' }, () => check());
    expect(failed).toMatchObject([
      { group: 'idp', fix: 'set `jwks` to the URL where the provider publishes its keys' },
    ]);
  });

  test('keys that are somewhere else: what was asked, and where the metadata says that they are', async () => {
    const { failed } = await check({ policy: { provider: undefined } });
    expect(failed).toEqual([
      {
        group: 'idp',
        status: 'fail',
        message: `keys: ${idp.issuer}/.well-known/jwks.json answered 404`,
        fix: `the provider publishes its keys elsewhere: set \`jwks: { url: ${idp.issuer}/protocol/openid-connect/certs }\``,
      },
    ]);
  });

  test('a configured place of the keys is asked, too', async () => {
    const url = `${idp.issuer}/protocol/openid-connect/certs`;
    const { all } = await check({ policy: { provider: undefined, jwks: { url } } });
    expect(all).toContainEqual({ group: 'idp', status: 'ok', message: `keys: 1 signing key at ${url}` });
    const { failed } = await check({ policy: { jwks: { url: `${url}/old` } } });
    expect(failed).toMatchObject([{ fix: expect.stringContaining(`set \`jwks: { url: ${url} }\``) }]);
  });

  test('keys in a file: tokens need no metadata, so that it cannot be had is a warning', async () => {
    writeFileSync(join(folder.path, 'keys.json'), JSON.stringify({ keys: idp.published }));
    const issuer = `http://127.0.0.1:${await refusingPort()}/realms/main`;
    const { code, all } = await check({ issuer, policy: { jwks: { file: 'keys.json' } } });
    expect(code).toBe(0);
    expect(all.filter(({ group, status }) => group === 'idp' && status === 'warn')).toMatchObject([
      { message: expect.stringContaining('metadata: '), fix: expect.stringContaining('still validated') },
    ]);
  });

  test('a token for another audience of a provider that follows RFC 8414', async () => {
    const { failed } = await check({
      token: idp.token({ aud: 'account' }),
      policy: { provider: undefined, jwks: { url: `${idp.issuer}/protocol/openid-connect/certs` } },
    });
    expect(failed).toMatchObject([{ fix: expect.stringContaining('to `audiences`') }]);
    expect(failed[0]?.fix).not.toContain('mapper');
  });

  test.each(['Bearer ', 'authorization: bearer '])('a token that was saved with `%s`', async (before) => {
    const { all } = await check({ token: `${before}${idp.token()}\n` });
    expect(all.map(({ message }) => message)).toContain('token: issuer, audience and times are accepted');
  });

  test('a token for `account`', async () => {
    const { failed } = await check({ token: idp.token({ aud: 'account' }) });
    expect(failed[0]?.message).toContain("audience is 'account'");
    expect(failed[0]?.fix).toContain('audience mapper');
  });

  test('a token that was copied with something behind it', async () => {
    const { failed } = await check({ token: `${idp.token()}",` });
    expect(failed).toMatchObject([
      {
        message: 'token: the token signature is not valid base64url',
        fix: 'use the access token of the provider, on a single line',
      },
    ]);
  });

  test('HTTPS required', async () => {
    const { failed } = await refusing(
      'openid-configuration',
      refusal(403, 'invalid_request', 'HTTPS required'),
      () => check(),
    );
    expect(failed[0]?.fix).toContain('sslRequired to NONE');
  });

  test('registration that a policy refuses', async () => {
    const description =
      "Policy 'Trusted Hosts' rejected request to client-registration service. Details: Host not trusted.";
    const { failed } = await refusing('registration', refusal(403, 'insufficient_scope', description), () =>
      check({ args: ['--probe-registration'] }),
    );
    expect(failed[0]?.message).toContain('Trusted Hosts');
    expect(failed[0]?.fix).toContain('keep client-uris-must-match on');
  });

  test('a login needs its client and password, and the password is never shown', async () => {
    const env = { LOGIN_PASSWORD: 'hunter2-hunter2' };
    const login = ['--login-user', 'ann', '--login-client', 'cli', '--login-password-env', 'LOGIN_PASSWORD'];
    const { failed } = await check({ args: login, env });
    expect(JSON.stringify(failed)).not.toContain('hunter2');
    const file = join(folder.path, 'config.yaml');
    const { code, stderr } = await cli(['check', '-f', file, '--login-user', 'ann']);
    expect([code, stderr]).toEqual([2, expect.stringContaining('--login-user requires --login-client')]);
  });

  test('commands, servers and ports that are not there', async () => {
    await using busy = await busyPort();
    await using stats = await busyPort('127.0.0.1');
    await using readiness = await busyPort('::1');
    const closed = await refusingPort();
    const { failed, code } = await check({
      port: busy.port,
      // The other one of localhost's addresses.
      env: { STATS_ADDR: `127.0.0.1:${stats.port}`, READINESS_ADDR: `localhost:${readiness.port}` },
      targets: [
        { name: 'gone', stdio: { cmd: 'no-such-command' } },
        { name: 'far', mcp: { host: `http://127.0.0.1:${closed}/mcp` } },
        { name: 'near', mcp: { host: `${idp.origin}/mcp` } },
      ],
    });
    expect(code).toBe(1);
    expect(failed.map(({ message }) => message)).toEqual([
      `${busy.port} (gateway default) is in use`,
      `${stats.port} (stats) is in use`,
      `${readiness.port} (readiness) is in use`,
      'gone   command not found: no-such-command',
      expect.stringMatching(new RegExp(`^far   127.0.0.1:${closed}: .*ECONNREFUSED`)),
    ]);
  });

  test('the key of a busy port is the one in the file', async () => {
    await using busy = await busyPort();
    const { port } = busy;
    const file = join(folder.path, 'llm.yaml');
    const config = { adminAddr: 'off', statsAddr: 'off', readinessAddr: 'off' };
    const models = [{ name: '*', provider: 'echo' }];
    writeFileSync(file, JSON.stringify({ config, llm: { port, models } }));
    const { stdout } = await agctl(['check', '-f', file, '--only', 'ports', '-o', 'json']);
    expect(JSON.parse(stdout).checks).toEqual([
      {
        group: 'ports',
        status: 'fail',
        message: `${port} (gateway llm) is in use`,
        fix: 'stop the process that uses it, or change llm.port; this is expected if the gateway is already running',
      },
    ]);
  });

  test('--offline asks nobody, --only runs what is named, unknown names are refused', async () => {
    const before = idp.upstream.received.length;
    const { all } = await check({ args: ['--offline', '--only', 'idp,targets'] });
    expect(new Set(all.map(({ group }) => group))).toEqual(new Set(['idp', 'targets']));
    expect(idp.upstream.received).toHaveLength(before);
    const { code, stderr } = await cli(['check', '-f', join(folder.path, 'config.yaml'), '--only', 'nope']);
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining('groups: environment, config, ports, targets, llm, idp'),
    ]);
  });
});
