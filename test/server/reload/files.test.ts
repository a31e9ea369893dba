import { createHash, generateKeyPairSync, verify } from 'node:crypto';
import { copyFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { AUTHORITY, certificatePath } from '../../kit/certificates.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { CHAT, chat, llmProvider } from '../../kit/llm-provider.ts';
import { proxyGateway, routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';
import { workerGateway } from '../../kit/workers.ts';

// The rows of docs/reload.md, "Other files", that no other test covers. Secrets that are mounted as files are replaced while the
// gateway runs, as cert-manager and Kubernetes do.

const HASHED = `sha256:${createHash('sha256').update('hashed-key').digest('hex')}`;
const shaOf = (password: string): string => createHash('sha1').update(password).digest('base64');

const bearer = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` });

/** A gateway that answers `in` to the keys of the file `clients.keys`. */
async function keyed(
  text: string,
  live: 'watched' | 'asked',
  run: (gate: TestGateway, file: string, statusOf: (key: string) => Promise<number>) => Promise<void>,
): Promise<void> {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'clients.keys');
  writeFileSync(file, text);
  const keys = [{ key: { file: 'clients.keys' }, metadata: { name: 'team' } }, { key: 'inline-key' }];
  const policies = { apiKey: { mode: 'strict', keys }, directResponse: { body: 'in' } };
  const yaml = routesConfig([{ policies }], {
    frontendPolicies: { accessLog: { add: { who: 'apiKey.name' } } },
  });
  await using gate = await gateway(yaml, { folder: folder.path, live });
  await run(gate, file, async (key) => (await send(gate.url, { headers: bearer(key) })).status);
}

interface KeyInFile {
  readonly auth?: object;
  readonly params?: object;
}

/** As Kubernetes and cert-manager do it: another file takes the place. */
function replaceFile(file: string, text: string): void {
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}

describe('keys of clients in a file', () => {
  test('apiKey accepts each line of the file, also hashes, and its metadata applies to all of them', () =>
    keyed(`# team\n\nfirst-key\r\n  second-key  \n${HASHED}\n`, 'asked', async (gate, _file, statusOf) => {
      for (const key of ['first-key', 'second-key', 'hashed-key'])
        expect([key, await statusOf(key)]).toEqual([key, 200]);
      expect((await gate.accessLine(1))['who']).toBe('team');
      for (const key of ['', '# team', '#', HASHED, 'third-key', 'clients.keys'])
        expect([key, await statusOf(key)]).toEqual([key, 401]);
      expect(await statusOf('inline-key')).toBe(200);
    }));

  test('apiKey accepts the keys of a changed file, and those of before no more', () =>
    keyed('first-key\n', 'watched', async (gate, file, statusOf) => {
      expect([await statusOf('first-key'), await statusOf('second-key')]).toEqual([200, 401]);
      // Both, while clients change over.
      replaceFile(file, 'first-key\nsecond-key\n');
      await until(async () => (await statusOf('second-key')) === 200);
      expect(await statusOf('first-key')).toBe(200);
      replaceFile(file, 'second-key\n');
      await until(async () => (await statusOf('first-key')) === 401);
      expect([await statusOf('second-key'), await statusOf('inline-key')]).toEqual([200, 200]);
      expect(gate.log.join('')).not.toMatch(/(?:first|second)-key/);
    }));

  test.each([
    ['is empty', (file: string) => writeFileSync(file, ''), 'the file is empty'],
    ['is deleted', (file: string) => rmSync(file), 'file not found'],
  ])(
    'while the file %s, the keys of before stay in use, and the log says why',
    async (_what, change, why) => {
      await keyed('first-key\n', 'watched', async (gate, file, statusOf) => {
        change(file);
        await until(() => gate.log.join('').includes('Failed to reload config'));
        expect(gate.log.join('')).toContain(why);
        expect([await statusOf('first-key'), gate.live.state.isSynchronized]).toEqual([200, false]);
        replaceFile(file, 'second-key\n');
        await until(async () => (await statusOf('second-key')) === 200);
        expect([await statusOf('first-key'), gate.live.state.isSynchronized]).toEqual([401, true]);
      });
    },
  );

  test.each([
    ['missing', undefined, 'file not found'],
    ['without keys', '# none\n', 'the file has no keys'],
  ])('a file that is %s is an error of the configuration', async (_what, text, problem) => {
    await using folder = await temporaryFolder();
    if (text !== undefined) writeFileSync(join(folder.path, 'clients.keys'), text);
    const yaml = routesConfig([{ policies: { apiKey: { keys: [{ key: { file: 'clients.keys' } }] } } }]);
    await expect(gateway(yaml, { folder: folder.path })).rejects.toThrow(problem);
  });

  test('workers accept the keys of a changed file', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'clients.keys');
    writeFileSync(file, 'first-key\n');
    const policies = {
      apiKey: { mode: 'strict', keys: [{ key: { file } }] },
      directResponse: { body: 'in' },
    };
    const config = { gateways: { default: { port: 0, routes: [{ policies }] } } };
    await using gate = await workerGateway(config);
    const statuses = async (key: string): Promise<number[]> => {
      const replies = await Promise.all(
        Array.from({ length: 6 }, () => send(gate.url, { headers: { ...bearer(key), connection: 'close' } })),
      );
      return replies.map(({ status }) => status);
    };
    expect(new Set(await statuses('first-key'))).toEqual(new Set([200]));
    replaceFile(file, 'second-key\n');
    await gate.reload(config);
    expect(new Set(await statuses('second-key'))).toEqual(new Set([200]));
    expect(new Set(await statuses('first-key'))).toEqual(new Set([401]));
  });
});

describe('a reload that is asked for reads all files again, watched or not', () => {
  test('keys of clients', () =>
    keyed('first-key\n', 'asked', async (gate, file, statusOf) => {
      replaceFile(file, 'second-key\n');
      expect(await statusOf('first-key')).toBe(200);
      expect(await gate.live.reload()).toBe(true);
      expect([await statusOf('first-key'), await statusOf('second-key')]).toEqual([401, 200]);
    }));

  test('users of basicAuth', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'users');
    writeFileSync(file, `ada:{SHA}${shaOf('one')}\n`);
    const policies = {
      basicAuth: { mode: 'strict', htpasswd: { file: 'users' } },
      directResponse: { body: 'in' },
    };
    await using gate = await gateway(routesConfig([{ policies }]), { folder: folder.path, live: 'asked' });
    const headers = { authorization: `Basic ${Buffer.from('bob:two').toString('base64')}` };
    expect((await send(gate.url, { headers })).status).toBe(401);
    writeFileSync(file, `bob:{SHA}${shaOf('two')}\n`);
    expect(await gate.live.reload()).toBe(true);
    expect((await send(gate.url, { headers })).status).toBe(200);
  });
});

test('a reload that is asked for reads the certificate of a listener again', async () => {
  await using folder = await temporaryFolder();
  const [cert, key] = [join(folder.path, 'a.crt'), join(folder.path, 'a.key')];
  copyFileSync(certificatePath('good.crt'), cert);
  copyFileSync(certificatePath('server.key'), key);
  const routes = [{ policies: { directResponse: { body: 'in' } } }];
  const yaml = JSON.stringify({ gateways: { default: { port: 0, tls: { cert, key }, routes } } });
  await using gate = await gateway(yaml, { folder: folder.path, live: 'asked' });
  const name = (): Promise<string | undefined> =>
    new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port: gate.port, rejectUnauthorized: false }, () => {
        resolve(socket.getPeerCertificate().subjectaltname);
        socket.destroy();
      }).on('error', reject);
    });
  expect(await name()).toBe('DNS:localhost');
  copyFileSync(certificatePath('other.crt'), cert);
  copyFileSync(certificatePath('other.key'), key);
  expect(await gate.live.reload()).toBe(true);
  await until(async () => (await name()) === 'DNS:other.example');
});

describe('credentials and certificates for backends in a file', () => {
  test('jwtSign signs with the key of a changed file', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'signing.pem');
    const pairs = [1, 2].map(() => generateKeyPairSync('ec', { namedCurve: 'P-256' }));
    const write = (index: number): void =>
      replaceFile(file, String(pairs[index]?.privateKey.export({ format: 'pem', type: 'pkcs8' })));
    write(0);
    await using backend = await httpUpstream();
    const policies = { backendAuth: { jwtSign: { signingKey: { file: 'signing.pem' }, alg: 'ES256' } } };
    await using gate = await proxyGateway(
      backend.address,
      policies,
      {},
      { folder: folder.path, live: 'watched' },
    );
    /** Which of the keys has signed the token of a request. */
    const signer = async (): Promise<number> => {
      await send(gate.url);
      const [head, claims, signature = ''] = String(backend.received.at(-1)?.headers.authorization)
        .replace('Bearer ', '')
        .split('.');
      return pairs.findIndex(({ publicKey }) =>
        verify(
          'sha256',
          Buffer.from(`${head}.${claims}`),
          { key: publicKey, dsaEncoding: 'ieee-p1363' },
          Buffer.from(signature, 'base64url'),
        ),
      );
    };
    expect(await signer()).toBe(0);
    write(1);
    await until(async () => (await signer()) === 1);
  });

  test('backendAuth sends the credential of a changed file', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'token');
    writeFileSync(file, 'one\n');
    await using backend = await httpUpstream();
    const policies = { backendAuth: { key: { file: 'token' } } };
    await using gate = await proxyGateway(
      backend.address,
      policies,
      {},
      { folder: folder.path, live: 'watched' },
    );
    const sent = async (): Promise<unknown> => {
      await send(gate.url);
      return backend.received.at(-1)?.headers.authorization;
    };
    expect(await sent()).toBe('Bearer one');
    replaceFile(file, 'two\n');
    await until(async () => (await sent()) === 'Bearer two');
  });

  test.each([
    ['auth', { auth: { key: { file: 'token' } } }],
    ['params.apiKey', { params: { apiKey: { file: 'token' } } }],
  ])(
    'a model with `%s` sends the key of a changed file',
    async (_, { auth, params: more = {} }: KeyInFile) => {
      await using folder = await temporaryFolder();
      const file = join(folder.path, 'token');
      writeFileSync(file, 'one');
      await using provider = await llmProvider();
      const params = { baseUrl: `http://${provider.address}/v1`, ...more };
      const models = [{ name: '*', provider: 'openAI', params, ...(auth && { auth }) }];
      await using gate = await gateway(JSON.stringify({ llm: { port: 0, models } }), {
        folder: folder.path,
        live: 'watched',
      });
      const sent = async (): Promise<unknown> => {
        await chat(gate, CHAT);
        return provider.received.at(-1)?.headers.authorization;
      };
      expect(await sent()).toBe('Bearer one');
      replaceFile(file, 'two');
      await until(async () => (await sent()) === 'Bearer two');
    },
  );

  const oauth = { clientId: 'c', clientSecret: { file: 'none.txt' } };
  const issuer = 'http://127.0.0.1:1';
  test.each([
    ['oidc', 'clientSecret', { oidc: { ...oauth, issuer, redirectURI: 'http://localhost/callback' } }],
    [
      'mcpAuthentication',
      'clientSecret',
      { mcpAuthentication: { ...oauth, issuer, audiences: ['a'], provider: { entra: {} } } },
    ],
    [
      'aws',
      'secretAccessKey',
      {
        backendAuth: {
          aws: { accessKeyId: 'a', secretAccessKey: { file: 'none.txt' }, region: 'eu-west-1' },
        },
      },
    ],
    [
      'aws',
      'sessionToken',
      {
        backendAuth: {
          aws: {
            accessKeyId: 'a',
            secretAccessKey: 'b',
            sessionToken: { file: 'none.txt' },
            region: 'eu-west-1',
          },
        },
      },
    ],
    [
      'azure',
      'client_secret',
      {
        backendAuth: {
          azure: {
            explicitConfig: {
              clientSecret: { tenant_id: 't', client_id: 'c', client_secret: { file: 'none.txt' } },
            },
          },
        },
      },
    ],
  ])(
    'the secret of `%s` (%s) may be in a file, which is missed where it is named',
    async (_, member, policies) => {
      await using folder = await temporaryFolder();
      const started = proxyGateway('127.0.0.1:1', policies, {}, { folder: folder.path });
      await expect(started).rejects.toThrow(new RegExp(`${member}\\.file: .*none\\.txt`));
    },
  );

  test('backendTLS trusts the authority of a changed file', async () => {
    await using folder = await temporaryFolder();
    const root = join(folder.path, 'root.pem');
    copyFileSync(certificatePath('client-authority.crt'), root);
    await using backend = await httpUpstream(undefined, { certificate: 'good' });
    const policies = { backendTLS: { root: 'root.pem', hostname: 'localhost' } };
    await using gate = await proxyGateway(
      backend.address,
      policies,
      {},
      { folder: folder.path, live: 'watched' },
    );
    expect((await send(gate.url)).status).toBe(502);
    copyFileSync(AUTHORITY, root);
    await until(async () => (await send(gate.url)).status === 200);
  });

  test('an empty file of a secret is reported as empty', async () => {
    await using folder = await temporaryFolder();
    writeFileSync(join(folder.path, 'token'), '\n');
    const params = { apiKey: { file: 'token' } };
    const config = JSON.stringify({ llm: { port: 0, models: [{ name: '*', provider: 'openAI', params }] } });
    await expect(gateway(config, { folder: folder.path })).rejects.toThrow('the file is empty');
  });

  test('a file that is no regular file is refused at once, and not waited for', async () => {
    await using backend = await httpUpstream();
    const policies = { backendAuth: { key: { file: '/dev/zero' } } };
    await expect(proxyGateway(backend.address, policies)).rejects.toThrow('is not a regular file');
  });
});
