import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AUTHORITY, type Certificate } from '../../kit/certificates.ts';
import { CHAT, chat, completion, DONE, errorOf, FINISH, chunk as piece } from '../../kit/llm-provider.ts';
import { type ServeProcess, serve } from '../../kit/process.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { type HttpUpstream, httpUpstream } from '../../kit/upstream.ts';

// Outside of tests, providers are reached over TLS and verified against the certificate authorities of the process.

const providerWith = (certificate?: Certificate): Promise<HttpUpstream> =>
  httpUpstream(
    (_, response, { body }) => {
      const request = JSON.parse(Buffer.from(body, 'latin1').toString()) as {
        stream?: boolean;
        user?: string;
      };
      if (request.stream !== true) {
        response.writeHead(200, { 'content-type': 'application/json' });
        return response.end(completion(request.user ?? 'Hello.'));
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const word of ['a', 'b', 'c']) response.write(piece({ content: word }));
      return response.end(FINISH + DONE);
    },
    certificate === undefined ? {} : { certificate },
  );

const model = (name: string, baseUrl: string) => ({
  name,
  provider: 'oaiCompat',
  params: { baseUrl, apiKey: 'sk-tls' },
});

let providers: Record<'good' | 'expired' | 'selfSigned' | 'plain', HttpUpstream>;
let trusting: ServeProcess;
let distrusting: ServeProcess;
beforeAll(async () => {
  const [good, expired, selfSigned, plain] = await Promise.all([
    providerWith('good'),
    providerWith('expired'),
    providerWith('self-signed'),
    providerWith(),
  ]);
  providers = { good, expired, selfSigned, plain };
  const models = [
    ...Object.entries(providers).map(([name, { port }]) => model(name, `https://localhost:${port}/v1`)),
    model('by-address', `https://127.0.0.1:${good.port}/v1`),
  ];
  const targets = [
    { model: 'expired', priority: 0 },
    { model: 'good', priority: 1 },
  ];
  const virtualModels = [{ name: 'either', routing: { failover: { targets } } }];
  const config = JSON.stringify({ llm: { port: 0, models, virtualModels } });
  [trusting, distrusting] = await Promise.all([
    serve(config, { env: { NODE_EXTRA_CA_CERTS: AUTHORITY } }),
    serve(config),
  ]);
});
afterAll(async () => {
  await Promise.all([trusting, distrusting].map((each) => each[Symbol.asyncDispose]()));
  await Promise.all(Object.values(providers).map((each) => each.close()));
});

describe('TLS provider with a trusted certificate', () => {
  for (const length of [10, 600, 16_000, 200_000]) {
    test(`a TLS provider receives a request of ${length} characters and sends as many`, async () => {
      const user = 'gr\u00fc\u00df'.repeat(length / 4).slice(0, length);
      const { status, text } = await chat(trusting, { ...CHAT, model: 'good', user });
      expect({ status, text }).toEqual({ status: 200, text: completion(user) });
      expect(providers.good.received.at(-1)?.headers['authorization']).toBe('Bearer sk-tls');
    });
  }

  test('a TLS provider streams', async () => {
    const { text } = await chat(trusting, { ...CHAT, model: 'good', stream: true });
    expect(text).toBe(['a', 'b', 'c'].map((content) => piece({ content })).join('') + FINISH + DONE);
  });
});

describe('TLS provider with an untrusted certificate', () => {
  test.each([
    ['has expired', () => trusting, 'expired', 'the certificate has expired'],
    ['is signed by itself', () => trusting, 'selfSigned', 'the certificate is self-signed'],
    ['is for another host', () => trusting, 'by-address', 'the certificate is for another host'],
    [
      'comes from an unknown authority',
      () => distrusting,
      'good',
      'the certificate was issued by an untrusted authority',
    ],
    ['is missing', () => trusting, 'plain', 'it does not speak TLS'],
  ] as const)(
    'a TLS provider is not sent a request when its certificate %s',
    async (_, served, name, why) => {
      const before = Object.values(providers).map(({ received }) => received.length);
      const reply = await chat(served(), { ...CHAT, model: name });
      expect({ status: reply.status, ...errorOf(reply) }).toMatchObject({
        status: 502,
        message: expect.stringContaining(why),
      });
      expect(reply.text).not.toContain('sk-tls');
      // The log has the reason too, once.
      await until(() => served().stdout.includes(why));
      expect(Object.values(providers).map(({ received }) => received.length)).toEqual(before);
    },
  );
});

test('the next provider is used when the certificate of the first has expired', async () => {
  const { status } = await chat(trusting, { ...CHAT, model: 'either' });
  expect(status).toBe(200);
  expect(providers.good.received.at(-1)?.body).toContain('"model":"good"');
});

test("the gateway keeps serving after a plain request to a provider's TLS port", async () => {
  const { status } = await send(`http://localhost:${providers.good.port}/`, {}).catch(() => ({ status: 0 }));
  expect(status).toBe(0);
  expect((await chat(trusting, { ...CHAT, model: 'good' })).status).toBe(200);
});
