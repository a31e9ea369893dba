import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from './kit/folder.ts';
import { gateway } from './kit/gateway.ts';
import { CHAT, llmProvider } from './kit/llm-provider.ts';
import { Browser, backend, client, SECRET, scripted } from './kit/oidc-site.ts';
import { freePort } from './kit/ports.ts';
import { service } from './kit/process.ts';
import { routesConfig } from './kit/routes.ts';
import { send } from './kit/send.ts';
import { until } from './kit/until.ts';
import { httpUpstream } from './kit/upstream.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (file: string): string => readFileSync(join(root, file), 'utf8');

/** The tests that show what docs/rotation.md says of each secret: the file, and what the test is called. */
const SHOWN_BY: Readonly<Record<string, readonly (readonly [file: string, title: string])[]>> = {
  'keys of model providers': [
    ['reload/files', 'a model with `%s` sends the key of a changed file'],
    [
      '../docs-rotation',
      'the key of a provider in gateway.env is replaced, and written back, without a restart',
    ],
  ],
  'credentials of MCP servers': [
    ['reload/files', 'backendAuth sends the credential of a changed file'],
    [
      'reload/reload',
      'MCP sessions of a changed backend keep their targets until they end; new sessions get the new targets',
    ],
  ],
  'keys of clients': [
    [
      'reload/files',
      'apiKey accepts each line of the file, also hashes, and its metadata applies to all of them',
    ],
    ['reload/files', 'apiKey accepts the keys of a changed file, and those of before no more'],
    ['reload/files', 'workers accept the keys of a changed file'],
  ],
  'virtual keys': [
    ['budgets/virtual-keys', 'a key works from its creation to its revocation, while the gateway runs'],
    ['budgets/virtual-keys', 'gateways with the same database see each other’s keys and revocations'],
  ],
  'passwords of users': [
    [
      'policies/basic-auth',
      'basicAuth reads its file again when it changes, and remembers no removed password',
    ],
  ],
  'access to the admin server and its pages': [
    ['../admin/roles', 'the configuration of roles is read again by a reload'],
  ],
  'OIDC client secret': [
    ['../docs-rotation', 'the secret of an OIDC client is replaced by a reload, and browsers stay signed in'],
  ],
  'secret of cookies': [
    ['policies/oidc', 'oidc lets a session end with its ID token, and a session of another key begin anew'],
  ],
  'session key': [
    ['../docs-rotation', 'a secret of `config` is taken by a restart only, and the log names it'],
  ],
  'certificates of listeners': [
    ['http/https', 'a new certificate is used for new connections, a bad one is not'],
    ['reload/files', 'a reload that is asked for reads the certificate of a listener again'],
  ],
  'certificates for backends': [['reload/files', 'backendTLS trusts the authority of a changed file']],
  'signing keys of tokens (JWKS)': [
    [
      'policies/issuer-keys',
      'fetches cached keys again at each reload, and refuses tokens of a key that is gone',
    ],
    [
      'policies/mcp-authentication/rotation',
      'key rotation under load rejects no valid token and rejects tokens of a removed key',
    ],
    [
      'policies/mcp-authentication/key-set',
      'key rotation accepts new keys immediately and old keys until they are removed',
    ],
  ],
  'database password': [
    ['../docs-rotation', 'a secret of `config` is taken by a restart only, and the log names it'],
  ],
  'Redis password': [
    ['../docs-rotation', 'a secret of `config` is taken by a restart only, and the log names it'],
  ],
  'credentials of OTLP collectors': [
    ['../docs-rotation', 'the credential of a collector is replaced by a reload'],
  ],
  'the same, of the process': [
    ['../docs-rotation', 'a secret of `config` is taken by a restart only, and the log names it'],
  ],

  'keys of namespaces of the memory': [
    [
      '../adapter/memory/http/namespaces',
      'a changed file is read again, and an invalid or missing one leaves the keys as they are',
    ],
  ],
};

// Read from the environment of another process once: there is nothing to replace.
const WITHOUT_TEST = ['keys of the memory'];

const page = read('docs/rotation.md');

test('docs/rotation.md says of each secret what a test shows', () => {
  const [, table = ''] = page.split('## Each secret');
  const secrets = [...table.matchAll(/^\| ([^|]+?) \|/gm)].map(([, name]) => name).slice(1);
  expect(secrets.toSorted()).toEqual([...Object.keys(SHOWN_BY), ...WITHOUT_TEST].toSorted());
  for (const [file, title] of Object.values(SHOWN_BY).flat())
    expect(read(join('test/server', `${file}.test.ts`)), `${file}: ${title}`).toContain(title);
});

test('docs/rotation.md names lines and metrics as the gateway has them', () => {
  const sources = [
    'src/server/runtime/reload/live-config.ts',
    'src/server/transport/tls/server-tls.ts',
    'src/server/policies/basic-auth/index.ts',
    'src/server/observe/metrics/metrics.ts',
  ].map(read);
  const named = [
    'configuration reloaded',
    'users were read',
    'a changed certificate is in use',
    'some settings are read only at startup',
    'tls_certificate_expiry_timestamp_seconds',
    'config_synchronized',
  ];
  for (const text of named) {
    expect(page).toContain(text);
    expect(
      sources.some((source) => source.replaceAll('\\', '').includes(text)),
      text,
    ).toBe(true);
  }
});

/** A gateway whose configuration is written again and reloaded. */
async function reloadable(first: object, env: Record<string, string> = {}) {
  const folder = await temporaryFolder();
  const gate = await gateway(JSON.stringify(first), { folder: folder.path, live: 'asked', env });
  return {
    gate,
    async become(next: object): Promise<boolean> {
      writeFileSync(join(folder.path, 'test.yaml'), JSON.stringify(next));
      return gate.live.reload();
    },
    async [Symbol.asyncDispose]() {
      await gate.close();
      await folder.remove();
    },
  };
}

describe('what docs/rotation.md says', () => {
  test('the key of a provider in gateway.env is replaced, and written back, without a restart', async () => {
    await using provider = await llmProvider();
    await using folder = await temporaryFolder();
    const model = {
      name: '*',
      provider: { custom: { providerOverride: 'openai', formats: [{ type: 'completions' }] } },
      params: { baseUrl: `http://${provider.address}/v1`, apiKey: '$PROVIDER_KEY' },
    };
    const config = {
      config: { adminAddr: 'off', logging: { format: 'json' } },
      llm: { port: 0, models: [model] },
    };
    writeFileSync(join(folder.path, 'gateway.yaml'), JSON.stringify(config));
    const variables = (key: string): void =>
      writeFileSync(join(folder.path, 'gateway.env'), `PROVIDER_KEY=${key}\n`, { mode: 0o600 });
    variables('canary-1');
    await using running = await service(['serve'], { cwd: folder.path });
    const sent = async (): Promise<string> => {
      await fetch(`${running.url}/v1/chat/completions`, { method: 'POST', body: JSON.stringify(CHAT) });
      return String(provider.received.at(-1)?.headers['authorization']);
    };
    const reloads = (): number =>
      running.stderr.split(/"message":"configuration reloaded".*"variables":"PROVIDER_KEY"/).length - 1;
    expect(await sent()).toBe('Bearer canary-1');
    variables('canary-2');
    await until(() => reloads() === 1);
    expect(await sent()).toBe('Bearer canary-2');
    variables('canary-1');
    await until(() => reloads() === 2);
    expect(await sent()).toBe('Bearer canary-1');
    expect(running.stderr + running.stdout).not.toContain('canary');
  });

  test('the secret of an OIDC client is replaced by a reload, and browsers stay signed in', async () => {
    await using provider = await scripted();
    await using upstream = await backend();
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const config = (clientSecret: string): object => ({
      gateways: {
        default: {
          port,
          routes: [
            {
              name: 'pages',
              policies: {
                oidc: { redirectURI: `${url}/oauth/callback`, ...client(provider.issuer), clientSecret },
              },
              backends: [{ host: upstream.address }],
            },
          ],
        },
      },
    });
    await using it = await reloadable(config('first'), SECRET);
    const before = new Browser();
    await before.follow(`${url}/app`);
    expect(await it.become(config('second'))).toBe(true);
    expect((await before.open(`${url}/app`)).status).toBe(200);
    await new Browser().follow(`${url}/app`);
    const secrets = provider.received
      .filter(({ target }) => target === '/token')
      .map(({ headers }) =>
        Buffer.from(String(headers['authorization']).slice('Basic '.length), 'base64').toString(),
      );
    expect(secrets).toEqual(['web:first', 'web:second']);
  });

  test('the credential of a collector is replaced by a reload', async () => {
    await using sink = await httpUpstream((_, response) => response.end());
    const config = (key: string): object => {
      const otlp = { host: sink.address, protocol: 'http', policies: { backendAuth: { key } } };
      return {
        ...(JSON.parse(routesConfig([{ name: 'a', policies: { directResponse: { body: 'x' } } }])) as object),
        frontendPolicies: { accessLog: { otlp } },
      };
    };
    await using it = await reloadable(config('first'));
    const exported = (key: string): string[] =>
      sink.received
        .filter(({ headers }) => headers.authorization === `Bearer ${key}`)
        .map(({ target }) => target);
    await send(it.gate.url);
    await until(() => exported('first').includes('/v1/logs'));
    expect(await it.become(config('second'))).toBe(true);
    await send(it.gate.url);
    await until(() => exported('second').includes('/v1/logs'));
  });

  test('a secret of `config` is taken by a restart only, and the log names it', async () => {
    const config = (more: object): object => ({
      ...(JSON.parse(routesConfig([{ name: 'a', policies: { directResponse: { body: 'x' } } }])) as object),
      config: more,
    });
    await using it = await reloadable(config({}));
    const secrets: Record<string, object> = {
      'config.session': { session: { key: '0'.repeat(64) } },
      'config.database': { database: { url: 'postgres://u:p@127.0.0.1:1/x' } },
      'config.shared': { shared: { redis: 'redis://:p@127.0.0.1:1' } },
      'config.metrics': { metrics: { otlp: { host: '127.0.0.1:1', protocol: 'http' } } },
      'config.tracing': {
        tracing: { otlpEndpoint: 'http://127.0.0.1:1', otlpProtocol: 'http', headers: { a: 'b' } },
      },
      'config.audit': { audit: { file: './audit.jsonl' } },
    };
    for (const [name, more] of Object.entries(secrets)) {
      expect(await it.become(config(more)), name).toBe(true);
      const warnings = it.gate.log.filter((line) => line.includes('some settings are read only at startup'));
      expect(warnings.at(-1)).toContain(name);
    }
  });
});
