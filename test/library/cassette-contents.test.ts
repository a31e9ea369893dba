import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { GatewayConfig } from '../../src/library/index.ts';
import { replayCassette, type StubModel, stubModel, testGateway } from '../../src/library/testing/index.ts';
import { writeCassette } from '../kit/cassette.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { httpUpstream } from '../kit/upstream.ts';

const models = (model: StubModel): GatewayConfig => ({
  gateways: { default: { port: 3000 } },
  llm: { models: [{ name: '*', ...model.as('openAI') }] },
});

const post = (url: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });

const hi = { model: 'm', messages: [{ role: 'user' as const, content: 'Hi' }] };
const textOf = async (answer: Promise<Response>): Promise<string> => (await answer).text();

describe('what is in a recording', () => {
  // vcr/vcr#704, betamaxpy/betamax#42, kevin1024/vcrpy#961; bodies with a content coding: getsentry/responses#724
  test('no secret of the client, the configuration or the provider is in the file', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'cassette.jsonl');
    const secrets = {
      clientKey: 'canary-client-key-1',
      bearer: 'canary-bearer-token-2',
      cookie: 'canary-cookie-3',
      query: 'canary-query-4',
      header: 'canary-header-5',
      configured: 'canary-configured-6',
      providerHeader: 'canary-provider-header-7',
      inBody: 'canary-in-body-8',
      setCookie: 'canary-set-cookie-9',
      basic: 'canary-basic-10',
      variable: 'canary-variable-11',
    };
    // A service that tells everything that it was sent.
    await using upstream = await httpUpstream((request, response, { body }) => {
      const { 'x-anything': _, ...headers } = request.headers;
      const [scheme, credentials = ''] = (headers.authorization ?? '').split(' ');
      const login = scheme === 'Basic' ? Buffer.from(credentials, 'base64').toString() : '';
      const told = { headers, url: request.url, body, password: secrets.inBody, login };
      response.setHeader('set-cookie', `session=${secrets.setCookie}`);
      response.setHeader('x-account', secrets.providerHeader);
      if (request.url?.startsWith('/stream') === true) {
        response.setHeader('content-type', 'text/event-stream');
        // A secret in pieces, as models send texts.
        for (const content of ['It is ', secrets.configured.slice(0, 9), secrets.configured.slice(9), '.'])
          response.write(`data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`);
        response.end('data: [DONE]\n\n');
        return;
      }
      const isPlain = request.url?.startsWith('/plain') === true;
      response.setHeader('content-type', isPlain ? 'text/plain' : 'application/json');
      response.setHeader('content-encoding', 'gzip');
      response.end(gzipSync(JSON.stringify(told)));
    });
    const config: GatewayConfig = {
      gateways: {
        default: {
          port: 3000,
          routes: [
            { matches: [{ path: { pathPrefix: '/own' } }], backends: [{ host: upstream.address }] },
            {
              backends: [{ host: upstream.address, policies: { backendAuth: { key: secrets.configured } } }],
              policies: {
                requestHeaderModifier: { add: { 'x-added-secret': '$ADDED_SECRET' } },
              },
            },
          ],
        },
      },
    };
    const basic = Buffer.from(`user:${secrets.basic}`).toString('base64');
    {
      await using gateway = await testGateway(config, {
        record: file,
        env: { ADDED_SECRET: secrets.variable },
      });
      const all = {
        'x-api-key': secrets.clientKey,
        authorization: `Bearer ${secrets.bearer}`,
        cookie: `a=1; sid=${secrets.cookie}`,
        'x-anything': secrets.header,
      };
      const body = { api_key: secrets.inBody, text: `Authorization: Bearer ${secrets.bearer}` };
      for (const path of ['/json', '/plain', '/stream'])
        await textOf(post(`${gateway.url}${path}?key=${secrets.query}&a=1`, body, all));
      const said = { text: 'A Bearer of news' };
      const login = post(`${gateway.url}/own`, said, { authorization: `Basic ${basic}` });
      expect(await textOf(login)).toContain(secrets.basic);
    }
    const text = readFileSync(file, 'utf8');
    expect(text.trim().split('\n')).toHaveLength(5);
    for (const [name, secret] of Object.entries(secrets)) {
      expect(text, name).not.toContain(secret);
      expect(text, name).not.toContain(Buffer.from(secret).toString('base64').replace(/=+$/, ''));
    }
    expect(text).not.toContain(basic);
    expect(text).toContain('It is <redacted>.');
    // The name of a scheme is no secret.
    expect(text).toContain('A Bearer of news');
    expect(statSync(file).mode & 0o777).toBe(0o600);

    // Clients send their own secrets, or others, and get the same.
    await using replay = await replayCassette(file);
    const body = { api_key: 'another', text: 'Authorization: Bearer another-token' };
    const answer = await post(`${replay.url}/json?a=1&key=another`, body, {
      authorization: 'Bearer another',
    });
    expect([answer.status, answer.headers.get('content-encoding')]).toEqual([200, null]);
    expect(await answer.json()).toMatchObject({ password: '<redacted>' });
  });

  test('the redaction of the record of requests applies to recordings', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'cassette.jsonl');
    await using model = await stubModel('Write to ada@example.com.');
    const config = {
      ...models(model),
      config: { database: { url: `sqlite://${join(folder.path, 'data.db')}` } },
      frontendPolicies: { accessLog: { database: { redaction: { rules: [{ builtin: 'email' }] } } } },
    } as GatewayConfig;
    {
      await using gateway = await testGateway(config, { record: file });
      await textOf(post(`${gateway.url}/v1/chat/completions`, hi));
    }
    const text = readFileSync(file, 'utf8');
    expect(text).not.toContain('ada@example.com');
    expect(text).toContain('"content":"Write to ');
  });

  describe.each([
    ['without a database', {}],
    ['with one', { database: { url: 'sqlite://./data.db' } }],
  ])('credentials of an agent’s prompts %s', (_, config) => {
    const key = 'MIIEvQIBADANBgkqhkiG9w0BAQ';
    const SECRETS = [
      ['sk-proj-canary6abcdefghijklmnopqrstuvwx', 'canary6'],
      ['use ghp_abcdefghijklmnopqrstuvwxyz0123456789 twice', 'ghp_'],
      ['password=hunter2hunter2 ok', 'hunter2'],
      ['{"api_key": "hunter2", "city": "Oslo"}', 'hunter2'],
      ['AKIAIOSFODNN7EXAMPLE', 'AKIA'],
      ['xoxb-123456789012-abcdefghijklmnop', 'xoxb'],
      [
        `sign with\n-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n${key}\n-----END RSA PRIVATE KEY-----\n`,
        key,
      ],
      [JSON.stringify(`-----BEGIN PRIVATE KEY-----\n${key}\n-----END PRIVATE KEY-----`), key],
      [`-----BEGIN OPENSSH PRIVATE KEY-----\n${key}`, key],
      ['https://user:secretpw@example.com/x', 'secretpw'],
    ] as const;
    const NUMBERS = ['card 4111 1111 1111 1111', 'ssn 123-45-6789', 'DE89370400440532013000'];

    test('are not in the file, and the same agent gets its answers from it, and another one does not', async () => {
      await using folder = await temporaryFolder();
      const file = join(folder.path, 'cassette.jsonl');
      await using model = await stubModel('yes');
      const ask = (url: string, content: string) =>
        post(`${url}/v1/chat/completions`, { model: 'm', messages: [{ role: 'user', content }] });
      const texts = [...SECRETS.map(([text]) => text), ...NUMBERS];
      {
        const settings = { ...models(model), config } as GatewayConfig;
        await using gateway = await testGateway(settings, { record: file, folder: folder.path });
        for (const text of texts) await textOf(ask(gateway.url, text));
      }
      const written = readFileSync(file, 'utf8');
      for (const [text, secret] of SECRETS) expect(written, text).not.toContain(secret);
      expect(written).not.toContain('BEGIN');
      expect(written.includes('4111')).toBe(!('database' in config));
      await using replay = await replayCassette(file);
      for (const text of texts) expect((await ask(replay.url, text)).status, text).toBe(200);
      // Another key is the same, and another text is not.
      expect((await ask(replay.url, `use ghp_${'b'.repeat(40)} twice`)).status).toBe(200);
      for (const text of ['what is the weather?', 'use it twice', 'card of mine', 'Hello Oslo'])
        expect((await ask(replay.url, text)).status, text).toBe(400);
    });
  });

  // Kludex/cassetter#71 (order of members), vcr/vcr#960 and mock-server/mockserver-monorepo#965 (boundaries), kevin1024/vcrpy#661 (empty)
  test('numbers, forms, empty and binary bodies are replayed as they were', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'cassette.jsonl');
    await using upstream = await httpUpstream((request, response) => {
      if (request.url === '/number') {
        response.setHeader('content-type', 'application/json');
        response.end('{"z":9007199254740993,"a":1}');
      } else if (request.url === '/binary') {
        response.setHeader('content-type', 'image/png');
        response.end(Buffer.from([0x89, 0x50, 0, 0xff]));
      } else if (request.url === '/empty') {
        response.setHeader('content-encoding', 'gzip');
        response.end();
      } else response.end('uploaded');
    });
    const routes = [{ backends: [{ host: upstream.address }] }];
    const form = (): FormData => {
      const data = new FormData();
      data.append('model', 'whisper');
      data.append('file', new Blob([Buffer.from([0, 255, 1])], { type: 'audio/wav' }), 'a.wav');
      return data;
    };
    const use = async (url: string): Promise<unknown[]> => [
      await textOf(fetch(`${url}/number`)),
      Buffer.from(await (await fetch(`${url}/binary`)).arrayBuffer()).toString('hex'),
      await textOf(fetch(`${url}/empty`)),
      (await fetch(`${url}/empty`, { method: 'HEAD' })).status,
      // Its boundary is another one each time.
      await textOf(fetch(`${url}/form`, { method: 'POST', body: form() })),
    ];
    {
      await using gateway = await testGateway(
        { gateways: { default: { port: 3000, routes } } },
        { record: file },
      );
      expect(await use(gateway.url)).toEqual([
        '{"z":9007199254740993,"a":1}',
        '895000ff',
        '',
        200,
        'uploaded',
      ]);
    }
    await using replay = await replayCassette(file);
    expect(await use(replay.url)).toEqual(['{"z":9007199254740993,"a":1}', '895000ff', '', 200, 'uploaded']);
    const other = form();
    other.set('model', 'another');
    expect((await fetch(`${replay.url}/form`, { method: 'POST', body: other })).status).toBe(400);
  });

  test('a broken line is refused with its place', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'cassette.jsonl');
    const exchange = {
      at: 0,
      request: { method: 'GET', target: '/', headers: {} },
      response: { ms: 0, status: 200, headers: {} },
    };
    const refused = async (text: string): Promise<string> => {
      writeFileSync(file, text);
      return replayCassette(file).then(
        () => 'accepted',
        (error: Error) => error.message.replace(file, 'FILE'),
      );
    };
    writeCassette(file, [exchange]);
    const good = readFileSync(file, 'utf8');
    expect(await refused(good)).toBe('accepted');
    expect(await refused(good.replace('"status":200', '"status":"ok"'))).toBe(
      'FILE:2: `response.status`: expected 0, or 200 to 599',
    );
    expect(await refused(good.replace('"at":0', '"at":"0"'))).toMatch(/^FILE:2: `at`: .*expected number/);
    expect(await refused(good.replace('"status":200', '"status":600'))).toMatch(
      /^FILE:2: `response\.status`: .*599/,
    );
    expect(await refused(good.replace('"headers":{}}}', '"headers":{"a b":"c"}}}'))).toMatch(
      /^FILE:2: `response\.headers\.a b`: /,
    );
    expect(await refused(good.replace('"headers":{}}}', '"headers":{"a":"b\\n"}}}'))).toBe(
      'FILE:2: `response.headers.a`: expected the value of a header',
    );
    expect(await refused(good.replace('"gateway":"default"', '"gateway":"other"'))).toBe(
      'FILE:2: `gateway`: line 1 has no gateway `other`',
    );
    expect(await refused(good.slice(0, -10))).toMatch(/^FILE:2: the line is not complete/);
    expect(await refused(good.replace('"cassette":1', '"cassette":2'))).toMatch(/^FILE:1: the format is 2/);
    expect(await refused('version: 1\ninteractions: []\n')).toMatch(/^FILE:1: expected the first line/);
    expect(await refused('')).toMatch(/^FILE:1: expected the first line/);
  });
});
