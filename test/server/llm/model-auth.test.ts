import { describe, expect, test } from 'vitest';
import { NO_AWS, signature, signatureIn } from '../../kit/aws.ts';
import { environment } from '../../kit/environment.ts';
import { gateway } from '../../kit/gateway.ts';
import { AUDIENCE, startIdp } from '../../kit/idp.ts';
import { answering, CHAT, chat, errorOf, llmProvider } from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';
import type { HttpUpstream, Received } from '../../kit/upstream.ts';

const SECRET = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY';
const through = (provider: HttpUpstream, model: object, policies: object = {}) =>
  gateway(
    JSON.stringify({
      llm: {
        port: 0,
        policies,
        models: [
          { name: '*', provider: 'openAI', params: { baseUrl: `http://${provider.address}/v1` }, ...model },
        ],
      },
    }),
  );
const CLIENT = { authorization: 'Bearer of-the-client', 'x-api-key': 'of-the-client' };

describe('auth of a model', () => {
  test.each([
    ['the header of the provider', { key: 's3cret-key' }, { authorization: 'Bearer s3cret-key' }],
    [
      'a header of its own',
      { key: { value: 's3cret-key', location: { header: { name: 'api-key' } } } },
      { 'api-key': 's3cret-key' },
    ],
    [
      'several headers',
      {
        key: 's3cret-key',
        credentials: [{ key: 'tenant-key', location: { header: { name: 'x-tenant', prefix: 'T ' } } }],
      },
      { authorization: 'Bearer s3cret-key', 'x-tenant': 'T tenant-key' },
    ],
  ])('a key is sent in %s, instead of the credentials of the client', async (_, auth, expected) => {
    await using provider = await llmProvider();
    await using gate = await through(provider, { auth });
    expect((await chat(gate, CHAT, CLIENT)).status).toBe(200);
    const { headers } = provider.received[0] as Received;
    expect(headers).toMatchObject(expected);
    expect(JSON.stringify(headers)).not.toContain('of-the-client');
  });

  test('a key that the provider echoes does not reach the client', async () => {
    await using provider = await llmProvider(
      answering('{"error":{"message":"bad field, key s3cret-key"}}', 400),
    );
    await using gate = await through(provider, { auth: { key: 's3cret-key' } });
    const reply = await chat(gate);
    expect(reply.text).toContain('bad field');
    expect(reply.text).not.toContain('s3cret-key');
  });

  test('passthrough sends the token of the client that jwtAuth has validated', async () => {
    await using idp = await startIdp();
    await using provider = await llmProvider();
    const jwks = JSON.stringify({ keys: [idp.key.jwk] });
    const jwtAuth = { mode: 'strict', issuer: idp.issuer, audiences: [AUDIENCE], jwks };
    await using gate = await through(provider, { auth: { passthrough: {} } }, { jwtAuth });
    const token = idp.token();
    await chat(gate, CHAT, { authorization: `Bearer ${token}` });
    expect(provider.received[0]?.headers.authorization).toBe(`Bearer ${token}`);
  });

  test.each([
    ['its own region', { region: 'eu-central-1' }, 'eu-central-1'],
    ['the region of the provider', {}, 'eu-west-1'],
  ])('aws signs the call as it is sent, for %s', async (_, more, region) => {
    using _env = environment(NO_AWS);
    await using provider = await llmProvider(
      answering(
        JSON.stringify({
          output: { message: { content: [{ text: 'Hello.' }], role: 'assistant' } },
          stopReason: 'end_turn',
          usage: { inputTokens: 12, outputTokens: 7, totalTokens: 19 },
        }),
      ),
    );
    await using gate = await through(provider, {
      provider: 'bedrock',
      params: { awsRegion: 'eu-west-1', model: 'm', baseUrl: `http://${provider.address}` },
      auth: { aws: { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: SECRET, ...more } },
    });
    expect((await chat(gate)).status).toBe(200);
    const received = provider.received[0] as Received;
    expect(received.headers.authorization).toMatch(
      new RegExp(`Credential=AKIDEXAMPLE/\\d{8}/${region}/bedrock/`),
    );
    expect(signatureIn(received)).toBe(signature(received, SECRET));
  });

  test.each([
    [{ auth: { key: 'a' }, params: { apiKey: 'b' } }, '`auth` and `params.apiKey` are mutually exclusive'],
    [
      { auth: { key: { value: 'a', location: { cookie: { name: 'a' } } } } },
      'the credential of a model is always in a header',
    ],
    [{ auth: {} }, 'expected exactly one of `key`, `passthrough`'],
    [{ auth: { key: { file: 'missing' } } }, 'missing'],
  ])('%j is refused', async (model, message) => {
    await using provider = await llmProvider();
    await expect(through(provider, model)).rejects.toThrow(message);
  });
});

describe('authorization of a model', () => {
  const rules = ['request.headers["x-team"] == "red"'];

  test('a call that the rules reject gets 403 in the format of the API, and the provider nothing', async () => {
    await using provider = await llmProvider();
    await using gate = await through(provider, { authorization: { rules } });
    const refused = await chat(gate, CHAT, { 'x-team': 'blue' });
    expect(refused.status).toBe(403);
    expect(errorOf(refused).message).toContain('authorization failed');
    expect(provider.received).toEqual([]);
    expect((await chat(gate, CHAT, { 'x-team': 'red' })).status).toBe(200);
  });

  test('the rules of a model also apply to it as a target of a virtual model', async () => {
    await using provider = await llmProvider();
    const model = { provider: 'openAI', params: { baseUrl: `http://${provider.address}/v1` } };
    const config = {
      llm: {
        port: 0,
        models: [
          { name: 'closed', ...model, authorization: { rules }, visibility: 'internal' },
          { name: 'open', ...model },
        ],
        virtualModels: [{ name: 'v', routing: { weighted: { targets: [{ model: 'closed', weight: 1 }] } } }],
      },
    };
    await using gate = await gateway(JSON.stringify(config));
    expect((await chat(gate, { ...CHAT, model: 'v' })).status).toBe(403);
    expect((await chat(gate, { ...CHAT, model: 'open' })).status).toBe(200);
    expect((await chat(gate, { ...CHAT, model: 'v' }, { 'x-team': 'red' })).status).toBe(200);
  });

  test('a body with a member that differs only in case from one that a rule of the model reads is 400', async () => {
    await using provider = await llmProvider();
    const deny = 'has(json(request.body).user) && json(request.body).user == "root"';
    await using gate = await through(provider, { authorization: { rules: [{ deny }] } });
    expect((await chat(gate, { ...CHAT, user: 'ada' })).status).toBe(200);
    expect((await chat(gate, { ...CHAT, user: 'root' })).status).toBe(403);
    const refused = await chat(gate, { ...CHAT, User: 'root' });
    expect(refused.status).toBe(400);
    expect(errorOf(refused).message).toBe(
      'the member "User" of the request body differs from "user" in case only',
    );
    expect(provider.received).toHaveLength(1);
  });

  test('a rule that is no expression is refused at its place', async () => {
    await using provider = await llmProvider();
    await expect(through(provider, { authorization: { rules: ['request.'] } })).rejects.toThrow(
      'authorization.rules.0',
    );
  });

  test('the model list needs no rule', async () => {
    await using provider = await llmProvider();
    await using gate = await through(provider, { authorization: { rules } });
    expect((await send(`${gate.url}/v1/models`)).status).toBe(200);
  });
});
