import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { CheckResult } from '../../src/cli/check/check.ts';
import { llmProviders } from '../../src/cli/check/llm-providers.ts';
import { LIMITS } from '../../src/core/limits.ts';
import { loadConfigText } from '../../src/server/config/load.ts';
import { planGateways } from '../../src/server/config/plan/plan-gateways.ts';
import type { Config } from '../../src/server/config/schema.ts';
import { AUTHORITY, type Certificate } from '../kit/certificates.ts';
import { cli, inheritedEnv } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { answering, completion, llmProvider } from '../kit/llm-provider.ts';
import { agctl } from '../kit/process.ts';
import { type HttpUpstream, httpUpstream, rawUpstream, refusingPort } from '../kit/upstream.ts';

interface Finding {
  readonly status: string;
  readonly message: string;
  readonly fix?: string;
}

const KEY = 'sk-canary-0123456789';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
beforeAll(async () => {
  folder = await temporaryFolder();
});
afterAll(() => folder.remove());
let files = 0;

/** Runs `agctl check --only llm` on this `llm` section, and expects that the output never has the key. */
async function check(
  llm: object,
  env: Readonly<Record<string, string | undefined>> = {},
  args: readonly string[] = [],
): Promise<{ code: number | null; checks: Finding[] }> {
  files += 1;
  const file = join(folder.path, `config-${files}.yaml`);
  writeFileSync(file, JSON.stringify({ llm: { port: 0, ...llm } }));
  const command = ['check', '-f', file, '--only', 'llm', '-o', 'json', ...args];
  // Node.js reads NODE_EXTRA_CA_CERTS only at startup.
  const { code, stdout, stderr } =
    env['NODE_EXTRA_CA_CERTS'] === undefined
      ? await cli(command, { env: { ...inheritedEnv(), ...env } })
      : await agctl(command, { env: { ...process.env, ...env } });
  expect(stdout + stderr).not.toContain(KEY);
  const checks = (JSON.parse(stdout).checks as (Finding & { group: string })[]).map(
    ({ group: _, ...finding }) => finding,
  );
  return { code, checks };
}

const model = (baseUrl: string | undefined, more: object = {}, name = 'm'): object => ({
  name,
  provider: 'oaiCompat',
  params: { ...(baseUrl === undefined ? {} : { baseUrl }), ...more },
});
const withKey = { apiKey: KEY };

describe('agctl check of LLM providers', () => {
  test('check is ok for providers that list their models with the key, and asks each once per key', async () => {
    await using provider = await llmProvider(answering('{"data":[]}'));
    const url = `http://${provider.address}/v1/`;
    const { code, checks } = await check(
      {
        providers: [{ name: 'shared', provider: 'oaiCompat', params: { baseUrl: url, apiKey: '$THE_KEY' } }],
        models: [
          { name: 'a', provider: { reference: 'shared' } },
          { name: 'b', provider: { reference: 'shared' } },
          model(url, { apiKey: 'another' }, 'c'),
          { name: 'd', provider: 'echo' },
          { name: 'e', provider: 'azure', params: { azureResourceName: 'eu', apiKey: 'another' } },
          { name: 'f', provider: 'bedrock', params: { awsRegion: 'eu-west-1' } },
          { name: 'g', provider: 'bedrock', params: { awsRegion: 'eu-west-2' } },
        ],
      },
      { THE_KEY: KEY },
    );
    expect(checks).toEqual([
      {
        status: 'ok',
        message: `a, b   ${provider.address} lists its models and accepts the key in THE_KEY`,
      },
      { status: 'ok', message: `c   ${provider.address} lists its models and accepts the key` },
      { status: 'skip', message: 'd   echo not checked: the gateway answers itself' },
      { status: 'skip', message: 'e   azure not checked: a call shows whether it answers' },
      { status: 'skip', message: 'f, g   bedrock not checked: a call shows whether it answers' },
    ]);
    expect(code).toBe(0);
    const asked = provider.received.map(({ method, target, headers }) => [
      method,
      target,
      headers.authorization,
    ]);
    expect(asked.sort()).toEqual([
      ['GET', '/v1/models', 'Bearer another'],
      ['GET', '/v1/models', `Bearer ${KEY}`],
    ]);
  });

  test('check reports other responses of a provider, does not send the key to redirects and does not print it', async () => {
    await using other = await httpUpstream();
    await using provider = await llmProvider((request, response, received) => {
      const status = Number(request.url?.split('/')[1]);
      const headers = { location: `http://${other.address}/models` };
      return answering(`{"error":"wrong key ${KEY}"}`, status, headers)(request, response, received);
    });
    await using page = await httpUpstream((_, response) => response.end('<html>'));
    const expected = [
      [401, 'fail', 'the key was rejected (401)', 'put a key of 127.0.0.1 that is valid'],
      [403, 'fail', 'the key was rejected (403)', 'into params.apiKey'],
      [404, 'ok', 'is reachable, but does not list models (404): the key was not tried', ''],
      [405, 'ok', 'is reachable, but does not list models (405): the key was not tried', ''],
      [429, 'warn', 'too many requests (429)', 'wait'],
      [503, 'warn', 'is currently failing (503)', 'try again later'],
      [418, 'warn', 'answers 418', 'is params.baseUrl the URL before'],
      [302, 'fail', 'redirects to another URL (302)', 'is params.baseUrl the URL before'],
    ] as const;
    const models = expected.map(([status]) =>
      model(`http://${provider.address}/${status}/v1`, withKey, `m${status}`),
    );
    await using chatting = await llmProvider(answering(completion('no list')));
    await using rootless = await httpUpstream((_, response) => response.writeHead(404).end());
    const others = [page, chatting, rootless].map(({ address }) => model(`http://${address}`, withKey));
    const { code, checks } = await check({ models: [...models, ...others] });
    expect(code).toBe(1);
    expect(checks.map(({ status, message, fix = '' }) => [status, message, fix])).toEqual([
      ...expected.map(([, status, message, fix]) => [
        status,
        expect.stringContaining(message),
        expect.stringContaining(fix),
      ]),
      ['warn', `m   ${page.address}: answers 200, but not with JSON`, expect.stringContaining('baseUrl')],
      [
        'warn',
        `m   ${chatting.address}: answers 200, but with something else than a list of models`,
        expect.stringContaining('baseUrl'),
      ],
      [
        'warn',
        `m   ${rootless.address}: nothing found at /models (404), and params.baseUrl has no path`,
        expect.stringContaining('baseUrl'),
      ],
    ]);
    expect(provider.received).toHaveLength(expected.length);
    expect(other.connections).toBe(0);
  });

  test('check sends no key to unreachable providers', async () => {
    const port = await refusingPort();
    await using plain = await httpUpstream();
    await using tls = await tlsProvider('self-signed');
    await using expired = await tlsProvider('expired');
    const names = [`http://127.0.0.1:${port}`, 'https://nowhere.invalid', `https://${plain.address}`];
    const behindTls = [tls, expired].map(({ port: at }) => `https://localhost:${at}`);
    const models = [...names, ...behindTls].map((origin, index) =>
      model(`${origin}/v1`, withKey, `m${index}`),
    );
    const { code, checks } = await check({ models }, { NODE_EXTRA_CA_CERTS: AUTHORITY });
    expect(code).toBe(1);
    expect(checks).toEqual([
      {
        status: 'fail',
        message: `m0   127.0.0.1:${port}: connection refused`,
        fix: 'start the server, or correct params.baseUrl',
      },
      {
        status: 'fail',
        message: expect.stringMatching(/^m1 {3}nowhere\.invalid: the host name does not resolve/),
        fix: expect.stringContaining('name server'),
      },
      {
        status: 'fail',
        message: `m2   ${plain.address}: it does not speak TLS`,
        fix: expect.stringContaining('write http:// instead'),
      },
      {
        status: 'fail',
        message: `m3   localhost:${tls.port}: the certificate is self-signed`,
        fix: expect.stringContaining('NODE_EXTRA_CA_CERTS'),
      },
      {
        status: 'fail',
        message: `m4   localhost:${expired.port}: the certificate has expired`,
        fix: expect.stringContaining('renew the certificate'),
      },
    ]);
    for (const { received } of [plain, tls, expired]) expect(received).toEqual([]);
  });

  test('check trusts a certificate from NODE_EXTRA_CA_CERTS only for its own host', async () => {
    await using tls = await tlsProvider('good');
    const models = ['localhost', '127.0.0.1'].map((host) =>
      model(`https://${host}:${tls.port}/v1`, withKey, host),
    );
    const { checks } = await check({ models }, { NODE_EXTRA_CA_CERTS: AUTHORITY });
    expect(checks.map(({ status, message }) => [status, message])).toEqual([
      ['ok', `localhost   localhost:${tls.port} lists its models and accepts the key`],
      ['fail', `127.0.0.1   127.0.0.1:${tls.port}: the certificate is for another host`],
    ]);
    expect(tls.received.map(({ headers }) => headers.authorization)).toEqual([`Bearer ${KEY}`]);
  });
});

describe('timeouts of agctl check', () => {
  const limits = LIMITS as { checkResponseTimeout: number; checkConnectTimeout: number };
  const before = { ...limits };
  afterEach(() => Object.assign(limits, before));

  /** The same checks in this process, with shorter timeouts. */
  async function soon(baseUrl: string): Promise<readonly CheckResult[]> {
    Object.assign(limits, { checkResponseTimeout: 100, checkConnectTimeout: 100 });
    const text = JSON.stringify({ llm: { port: 0, models: [model(baseUrl, withKey)] } });
    const loaded = loadConfigText(text, 'config.yaml', {});
    const checks = llmProviders.run({
      file: 'config.yaml',
      loaded,
      config: loaded.config,
      gateways: planGateways(loaded.config as Config).gateways,
      env: {},
      folder: folder.path,
      options: {
        offline: false,
        start: false,
        tools: false,
        contract: undefined,
        token: undefined,
        probeRegistration: false,
        login: undefined,
      },
    });
    return (await Promise.all(checks.map(({ results }) => results))).flat();
  }

  test('check reports a provider that does not answer before the timeout', async () => {
    await using provider = await llmProvider(() => undefined);
    expect(await soon(`http://${provider.address}/v1`)).toEqual([
      {
        status: 'fail',
        message: `m   ${provider.address}: no answer within 0.1 s`,
        fix: expect.stringContaining('state of the provider'),
      },
    ]);
  });

  test('check reports a provider that accepts no connection before the timeout', async () => {
    await using silent = await rawUpstream(() => undefined);
    expect(await soon(`https://${silent.address}/v1`)).toEqual([
      {
        status: 'fail',
        message: `m   ${silent.address}: connection timeout`,
        fix: expect.stringContaining('firewall'),
      },
    ]);
  });
});

/** A provider behind TLS whose list of models is empty. */
const tlsProvider = (certificate: Certificate): Promise<HttpUpstream> =>
  httpUpstream(answering('{"data":[]}'), { certificate });

describe('provider keys in agctl check', () => {
  test('check warns when a provider requires a key and none is configured', async () => {
    const models = [
      model(undefined, {}, 'gpt'),
      { name: 'q', provider: 'groq' },
      { name: 'l', provider: 'ollama' },
    ];
    const { code, checks } = await check({ models }, {}, ['--offline']);
    expect(code).toBe(0);
    expect(checks).toEqual([
      {
        status: 'warn',
        message: 'gpt   api.openai.com: no key is configured, so each client must send its own',
        fix: expect.stringContaining('$OPENAI_API_KEY'),
      },
      { status: 'skip', message: 'gpt   api.openai.com not contacted (--offline)' },
      expect.objectContaining({ status: 'warn', fix: expect.stringContaining('$GROQ_API_KEY') }),
      { status: 'skip', message: 'q   api.groq.com not contacted (--offline)' },
      { status: 'skip', message: 'l   localhost:11434 not contacted (--offline)' },
    ]);
  });

  test('check accepts a key in the headers or none if none is required, and sends no invalid key', async () => {
    await using provider = await llmProvider(answering('', 401));
    await using open = await llmProvider();
    const requestHeaders = { set: { Authorization: `Bearer ${KEY}` } };
    const models = [
      { ...model(`http://${provider.address}/v1`), requestHeaders },
      model(`http://${open.address}/v1`, {}, 'free'),
      model(`http://${open.address}/v1`, { apiKey: '$THE_KEY' }, 'broken'),
    ];
    const { code, checks } = await check({ models }, { THE_KEY: `${KEY}\n` });
    expect(code).toBe(1);
    expect(checks).toEqual([
      expect.objectContaining({ status: 'fail', fix: expect.stringContaining('into requestHeaders') }),
      { status: 'ok', message: `free   ${open.address} accepts connections` },
      expect.objectContaining({
        status: 'fail',
        message: expect.stringContaining('the key in THE_KEY contains spaces, line breaks'),
      }),
      { status: 'ok', message: `broken   ${open.address} accepts connections` },
    ]);
    expect(provider.received[0]?.headers.authorization).toBe(`Bearer ${KEY}`);
    expect([open.connections, open.received.length]).toEqual([2, 0]);
  });

  test.each([
    ['is empty', { THE_KEY: '' }],
    ['is not set', { THE_KEY: undefined }],
  ])('check reports a provider key in a variable that %s', async (problem, env) => {
    const { code, checks } = await check({ models: [model(undefined, { apiKey: '$THE_KEY' })] }, env);
    expect(code).toBe(1);
    expect(checks[0]).toEqual({
      status: 'fail',
      message: `llm.models[0].params.apiKey is the environment variable THE_KEY, which ${problem}`,
      fix: 'set THE_KEY for agctl; if clients bring their own keys, remove apiKey',
    });
  });
});
