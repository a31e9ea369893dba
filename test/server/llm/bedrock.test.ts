import { EventStreamCodec } from '@smithy/core/event-streams';
import { describe, expect, test } from 'vitest';
import { NO_AWS, signature, signatureIn } from '../../kit/aws.ts';
import { environment } from '../../kit/environment.ts';
import { gateway } from '../../kit/gateway.ts';
import {
  answering,
  bodyOf,
  CHAT,
  chat,
  errorOf,
  llmGateway,
  llmProvider,
  modelsGateway,
} from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { type HttpUpstream, httpUpstream, type Received } from '../../kit/upstream.ts';

const MODEL = 'anthropic.claude-3-5-sonnet-20240620-v1:0';
const SECRET = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY';
const KEYS = { ...NO_AWS, AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE', AWS_SECRET_ACCESS_KEY: SECRET };

/** A Converse response in the form of Bedrock's API reference. */
const ANSWER = JSON.stringify({
  metrics: { latencyMs: 551 },
  output: { message: { content: [{ text: 'Hello.' }], role: 'assistant' } },
  stopReason: 'end_turn',
  usage: { inputTokens: 12, outputTokens: 7, totalTokens: 19 },
});

const gatewayTo = (upstream: HttpUpstream, params: object = {}, more: object = {}) =>
  llmGateway(upstream, {
    model: { provider: 'bedrock' },
    params: { awsRegion: 'eu-west-1', model: MODEL, baseUrl: `http://${upstream.address}`, ...params },
    ...more,
  });

describe('calls of the bedrock provider', () => {
  test('a chat completion becomes a signed Converse call, and the answer a chat completion with its usage', async () => {
    using _env = environment(KEYS);
    await using upstream = await httpUpstream(answering(ANSWER));
    await using gate = await gatewayTo(upstream);
    const reply = await chat(gate, { ...CHAT, max_tokens: 9 }, { authorization: 'Bearer client' });
    expect(reply.status).toBe(200);
    expect(JSON.parse(reply.text)).toMatchObject({
      object: 'chat.completion',
      model: MODEL,
      choices: [{ message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 },
    });
    const received = upstream.received[0] as Received;
    expect(received.target).toBe('/model/anthropic.claude-3-5-sonnet-20240620-v1%3A0/converse');
    expect(bodyOf(upstream)).toEqual({
      messages: [{ role: 'user', content: [{ text: 'Hi' }] }],
      inferenceConfig: { maxTokens: 9 },
    });
    expect(received.headers['authorization']).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/eu-west-1\/bedrock\/aws4_request, /,
    );
    expect(signatureIn(received)).toBe(signature(received, SECRET));
    expect((await gate.accessLine(1))['gen_ai.provider.name']).toBe('aws.bedrock');
  });

  test('the signature covers the body as it is sent, also one that is not ASCII', async () => {
    using _env = environment(KEYS);
    await using upstream = await httpUpstream(answering(ANSWER));
    await using gate = await gatewayTo(upstream);
    await chat(gate, { ...CHAT, messages: [{ role: 'user', content: 'Grüß Gott 👋' }] });
    const received = upstream.received[0] as Received;
    expect(signatureIn(received)).toBe(signature(received, SECRET));
    expect(signature({ ...received, body: `${received.body} ` }, SECRET)).not.toBe(signatureIn(received));
  });

  test('a stream of Bedrock reaches the client as server-sent events, whatever the chunks', async () => {
    using _env = environment(KEYS);
    const codec = new EventStreamCodec(
      (bytes) => Buffer.from(bytes as Uint8Array).toString('utf8'),
      (text) => Buffer.from(text),
    );
    const message = (type: string, body: object): Uint8Array =>
      codec.encode({
        headers: {
          ':event-type': { type: 'string', value: type },
          ':message-type': { type: 'string', value: 'event' },
        },
        body: Buffer.from(JSON.stringify(body)),
      });
    const bytes = Buffer.concat([
      message('messageStart', { role: 'assistant' }),
      message('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'Hel' } }),
      message('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'lo.' } }),
      message('contentBlockStop', { contentBlockIndex: 0 }),
      message('messageStop', { stopReason: 'end_turn' }),
      message('metadata', { usage: { inputTokens: 12, outputTokens: 7, totalTokens: 19 } }),
    ]);
    await using upstream = await httpUpstream((_, response) => {
      response.writeHead(200, { 'content-type': 'application/vnd.amazon.eventstream' });
      for (let at = 0; at < bytes.length; at += 50) response.write(bytes.subarray(at, at + 50));
      response.end();
    });
    await using gate = await gatewayTo(upstream);
    const { text, headers } = await chat(gate, {
      ...CHAT,
      stream: true,
      stream_options: { include_usage: true },
    });
    expect(upstream.received[0]?.target).toMatch(/\/converse-stream$/);
    expect(headers['content-type']).toBe('text/event-stream');
    const chunks = text
      .split('\n\n')
      .filter((frame) => frame.startsWith('data: {'))
      .map(
        (frame) =>
          JSON.parse(frame.slice(6)) as { choices: { delta: { content?: string } }[]; usage?: object },
      );
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('Hello.');
    expect(chunks.at(-1)?.usage).toMatchObject({ prompt_tokens: 12, completion_tokens: 7 });
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
    expect(await gate.accessLine(1)).toMatchObject({
      'gen_ai.usage.input_tokens': '12',
      'gen_ai.usage.output_tokens': '7',
    });
  });

  test('a client of the Messages API gets an error of Bedrock in its own format', async () => {
    using _env = environment(KEYS);
    const error = JSON.stringify({ message: 'Too many requests, please wait.' });
    await using upstream = await httpUpstream(answering(error, 429));
    await using gate = await gatewayTo(upstream);
    const body = JSON.stringify({ model: 'm', max_tokens: 9, messages: CHAT.messages });
    const reply = await send(`${gate.url}/v1/messages`, { method: 'POST', body });
    expect(reply.status).toBe(429);
    expect(JSON.parse(reply.text)).toMatchObject({
      type: 'error',
      error: { type: 'rate_limit_error', message: 'Too many requests, please wait.' },
    });
  });

  test('calls that Bedrock has no format for are refused before anything is sent', async () => {
    using _env = environment(KEYS);
    await using upstream = await llmProvider();
    await using gate = await gatewayTo(upstream);
    const reply = await send(`${gate.url}/v1/embeddings`, {
      method: 'POST',
      body: JSON.stringify({ model: 'm', input: 'x' }),
    });
    expect(reply.status).toBe(400);
    expect(errorOf(reply).code).toBe('unsupported_endpoint');
    expect(upstream.received).toHaveLength(0);
  });
});

describe('prompt caching of the bedrock provider', () => {
  const POINT = { cachePoint: { type: 'default' } };
  const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }];
  const LONG = 'Be brief. '.repeat(500);
  const messages = (system: unknown) => [
    { role: 'system', content: system },
    { role: 'user', content: 'One' },
    { role: 'assistant', content: 'Two' },
    { role: 'user', content: 'Three' },
  ];

  /** Where the body that Bedrock gets has cache points, for a model with these settings. */
  async function points(promptCaching: object, body: object, model = MODEL): Promise<string[]> {
    using _env = environment(KEYS);
    await using upstream = await httpUpstream(answering(ANSWER));
    await using gate = await llmGateway(upstream, {
      model: { provider: 'bedrock', promptCaching },
      params: { awsRegion: 'eu-west-1', model, baseUrl: `http://${upstream.address}` },
    });
    expect((await chat(gate, { model: 'm', ...body })).status).toBe(200);
    const received = upstream.received[0] as Received;
    expect(signatureIn(received)).toBe(signature(received, SECRET));
    const sent = bodyOf(upstream) as {
      system?: object[];
      messages: { content: object[] }[];
      toolConfig?: { tools: object[] };
    };
    const lists = Object.entries<object[]>({
      system: sent.system ?? [],
      ...sent.messages.map(({ content }) => content),
      tools: sent.toolConfig?.tools ?? [],
    });
    return lists.flatMap(([name, list]) =>
      list.flatMap((block, at) =>
        JSON.stringify(block) === JSON.stringify(POINT) ? [`${name}[${at}]`] : [],
      ),
    );
  }

  test.each([
    [{}, { messages: messages(LONG), tools }, ['1[1]', 'system[1]']],
    [{ cacheTools: true }, { messages: messages('short'), tools }, ['1[1]', 'tools[1]']],
    [{ minTokens: null, cacheMessages: false }, { messages: messages('short') }, ['system[1]']],
    [{ cacheSystem: false, cacheMessageOffset: 5 }, { messages: messages(LONG) }, ['0[1]']],
    [{ cacheSystem: false }, { messages: [{ role: 'user', content: 'One' }] }, []],
  ])('with %j, cache points are after what the next request repeats', async (caching, body, expected) => {
    expect(await points(caching, body)).toEqual(expected);
  });

  test('a client that sets cache points itself gets no others in the same part', async () => {
    const marked = [{ type: 'text', text: LONG, cache_control: { type: 'ephemeral' } }];
    expect(await points({}, { messages: messages(marked) })).toEqual(['1[1]', 'system[1]']);
  });

  test('models without prompt caching get no cache points', async () => {
    expect(await points({}, { messages: messages(LONG) }, 'mistral.mistral-large-2407-v1:0')).toEqual([]);
  });
});

describe('bedrock as the backend of a route', () => {
  test('the host is replaced and the path kept, and a guardrail of Bedrock is part of the signed request', async () => {
    using _env = environment(KEYS);
    await using upstream = await httpUpstream(answering(ANSWER));
    const bedrock = { model: MODEL, region: 'eu-west-1', guardrailIdentifier: 'gr-1', guardrailVersion: '2' };
    const ai = { name: 'aws', provider: { bedrock }, hostOverride: upstream.address };
    await using gate = await gateway(
      JSON.stringify({
        config: { adminAddr: 'off' },
        gateways: { default: { port: 0 } },
        routes: [{ backends: [{ ai }] }],
      }),
    );
    expect((await chat(gate)).status).toBe(200);
    const received = upstream.received[0] as Received;
    expect(received.target).toMatch(/^\/model\/[^/]+\/converse$/);
    expect(bodyOf(upstream)['guardrailConfig']).toEqual({
      guardrailIdentifier: 'gr-1',
      guardrailVersion: '2',
    });
    expect(signatureIn(received)).toBe(signature(received, SECRET));
  });
});

describe('credentials of the bedrock provider', () => {
  test('an API key of Bedrock is a bearer token, from the configuration or from AWS_BEARER_TOKEN_BEDROCK', async () => {
    await using upstream = await httpUpstream(answering(ANSWER));
    await using configured = await gatewayTo(upstream, { apiKey: 'bedrock-api-key-1' });
    await chat(configured, CHAT, { 'x-api-key': 'client' });
    expect(upstream.received[0]?.headers).toMatchObject({ authorization: 'Bearer bedrock-api-key-1' });
    await using ambient = await gatewayTo(
      upstream,
      {},
      {
        options: { env: { AWS_BEARER_TOKEN_BEDROCK: 'bedrock-api-key-2' } },
      },
    );
    await chat(ambient, CHAT, { 'x-api-key': 'client', authorization: 'Bearer client' });
    expect(upstream.received[1]?.headers).toMatchObject({ authorization: 'Bearer bedrock-api-key-2' });
    expect(upstream.received[1]?.headers).not.toHaveProperty('x-api-key');
  });

  test('temporary credentials of a container sign with their session token, and are fetched again when they expire', async () => {
    let fetched = 0;
    await using metadata = await httpUpstream((_, response) => {
      fetched += 1;
      // The library replaces credentials that expire within five minutes.
      const expires = new Date(Date.now() + (fetched === 1 ? 60_000 : 3_600_000)).toISOString();
      response.writeHead(200, { 'content-type': 'application/json' }).end(
        JSON.stringify({
          AccessKeyId: `AKID${fetched}`,
          SecretAccessKey: `${SECRET}${fetched}`,
          Token: `session-${fetched}`,
          Expiration: expires,
        }),
      );
    });
    using _env = environment({
      ...NO_AWS,
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `http://${metadata.address}/credentials`,
    });
    await using upstream = await httpUpstream(answering(ANSWER));
    await using gate = await gatewayTo(upstream);
    for (const _ of [1, 2, 3]) expect((await chat(gate)).status).toBe(200);
    await until(() => upstream.received.at(-1)?.headers['x-amz-security-token'] === 'session-2');
    expect(fetched).toBe(2);
    for (const received of upstream.received) {
      const number = String(received.headers['x-amz-security-token']).slice('session-'.length);
      expect(signatureIn(received)).toBe(signature(received, `${SECRET}${number}`));
    }
  });

  test('without credentials, the client gets a 503 without details, and the log names the places that were searched', async () => {
    using _env = environment(NO_AWS);
    await using upstream = await llmProvider();
    await using gate = await gatewayTo(upstream);
    const reply = await chat(gate);
    expect(reply.status).toBe(503);
    expect(errorOf(reply).message).toBe(
      'upstream call failed: the gateway has no valid credentials for the provider',
    );
    const line = await gate.accessLine(1);
    expect(line['error.detail']).toContain('AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY');
    expect(upstream.received).toHaveLength(0);
  });

  test('failover uses the next model if there are no credentials for the first', async () => {
    using _env = environment(NO_AWS);
    await using first = await llmProvider();
    await using second = await llmProvider();
    const models = [
      {
        name: 'aws',
        provider: 'bedrock',
        params: { awsRegion: 'eu-west-1', baseUrl: `http://${first.address}` },
      },
      { name: 'own', provider: 'oaiCompat', params: { baseUrl: `http://${second.address}/v1` } },
    ];
    const targets = [
      { model: 'aws', priority: 0 },
      { model: 'own', priority: 1 },
    ];
    await using gate = await modelsGateway(models, {
      virtualModels: [{ name: 'safe', routing: { failover: { targets } } }],
    });
    expect((await chat(gate, { ...CHAT, model: 'safe' })).status).toBe(200);
    expect([first.received.length, second.received.length]).toEqual([0, 1]);
  });

  test('neither secrets nor signatures are in the log, in the trace of a call or in a dump', async () => {
    using _env = environment({ ...KEYS, AWS_SESSION_TOKEN: 'session-token-of-the-gateway' });
    await using upstream = await httpUpstream(answering(ANSWER));
    await using gate = await gatewayTo(
      upstream,
      {},
      {
        more: { config: { adminAddr: '127.0.0.1:0' } },
        options: { admin: true, level: 'trace' },
      },
    );
    await chat(gate);
    await gate.accessLine(1);
    const dump = await send(`${gate.admin}/config_dump`);
    const shown = [...gate.log, ...gate.accessLog, dump.text].join('\n');
    const sent = signatureIn(upstream.received[0] as Received) as string;
    for (const secret of [SECRET, 'session-token-of-the-gateway', sent]) expect(shown).not.toContain(secret);
  });

  test('a model without a region is reported, with the variable that may set it', async () => {
    await using upstream = await llmProvider();
    await expect(gatewayTo(upstream, { awsRegion: undefined })).rejects.toThrow(
      'provider `bedrock` needs `awsRegion`',
    );
    await using gate = await gatewayTo(
      upstream,
      { awsRegion: undefined, apiKey: 'bedrock-api-key' },
      { options: { env: { AWS_REGION: 'us-east-1' } } },
    );
    expect((await chat(gate)).status).toBe(502);
  });
});
