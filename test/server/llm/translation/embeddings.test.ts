import { GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import {
  answering,
  bodyOf,
  errorOf,
  llmGateway,
  llmProvider,
  modelsGateway,
} from '../../../kit/llm-provider.ts';
import { type HttpReply, send } from '../../../kit/send.ts';
import type { HttpUpstream } from '../../../kit/upstream.ts';

// Requests for embeddings in the formats of OpenAI and Gemini, and the providers that have other ones.

const openAi = ({ url }: { url: string }): OpenAI =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: 'client-key', maxRetries: 0 });

const google = ({ url }: { url: string }): GoogleGenAI =>
  new GoogleGenAI({ apiKey: 'client-key', httpOptions: { baseUrl: url } });

const post = ({ url }: { url: string }, path: string, body: object): Promise<HttpReply> =>
  send(`${url}${path}`, { method: 'POST', body: JSON.stringify(body) });

const TITAN = 'amazon.titan-embed-text-v2:0';
const COHERE = 'eu.cohere.embed-v4:0';

const bedrock = (upstream: HttpUpstream, model: string, more: object = {}) =>
  llmGateway(upstream, {
    model: { provider: 'bedrock', ...more },
    params: { awsRegion: 'eu-west-1', apiKey: 'bedrock-key', model, baseUrl: `http://${upstream.address}` },
  });

const vertex = (upstream: HttpUpstream, model = 'gemini-embedding-001') =>
  llmGateway(upstream, {
    model: { provider: 'vertex' },
    params: { vertexProject: 'acme', apiKey: 'ya29.key', model, baseUrl: `http://${upstream.address}/v1/p` },
  });

/** Answers in the forms of the API references. Halves are exact in 32 bits. */
const TITAN_ANSWER =
  '{"embedding":[0.5,-1.5],"inputTextTokenCount":3,"embeddingsByType":{"float":[0.5,-1.5]}}';
const COHERE_ANSWER =
  '{"id":"1","response_type":"embeddings_by_type","embeddings":{"float":[[0.5],[1.5]]},"texts":["a","b"]}';
const VERTEX_ANSWER = JSON.stringify({
  predictions: [0.5, 1.5].map((value) => ({
    embeddings: { values: [value], statistics: { truncated: false, token_count: 2 } },
  })),
  metadata: { billableCharacterCount: 2 },
});
const OPENAI_ANSWER = JSON.stringify({
  object: 'list',
  data: [
    { object: 'embedding', index: 0, embedding: [0.5] },
    { object: 'embedding', index: 1, embedding: [1.5] },
  ],
  model: 'text-embedding-3-small',
  usage: { prompt_tokens: 4, total_tokens: 4 },
});

describe('the official OpenAI client gets embeddings of other providers', () => {
  test('Titan on Bedrock embeds one text, as Base64 by default', async () => {
    await using upstream = await llmProvider(answering(TITAN_ANSWER));
    await using gate = await bedrock(upstream, TITAN);
    const { data, usage, model } = await openAi(gate).embeddings.create({
      model: 'any',
      input: 'one text',
      dimensions: 256,
      user: 'someone',
    });
    expect(data).toEqual([{ object: 'embedding', index: 0, embedding: [0.5, -1.5] }]);
    expect([usage, model]).toEqual([{ prompt_tokens: 3, total_tokens: 3 }, TITAN]);
    expect(upstream.received[0]).toMatchObject({
      target: '/model/amazon.titan-embed-text-v2%3A0/invoke',
      headers: { authorization: 'Bearer bedrock-key' },
    });
    expect(bodyOf(upstream)).toEqual({ inputText: 'one text', dimensions: 256 });
    expect(await gate.accessLine(1)).toMatchObject({
      'gen_ai.operation.name': 'embeddings',
      'gen_ai.usage.input_tokens': '3',
    });
  });

  test('Cohere on Bedrock embeds several texts as documents, and counts tokens in a header', async () => {
    await using upstream = await llmProvider(
      answering(COHERE_ANSWER, 200, { 'x-amzn-bedrock-input-token-count': '7' }),
    );
    await using gate = await bedrock(upstream, COHERE);
    const { data, usage } = await openAi(gate).embeddings.create({
      model: 'any',
      input: ['a', 'b'],
      dimensions: 512,
      encoding_format: 'float',
    });
    expect(data.map(({ embedding }) => embedding)).toEqual([[0.5], [1.5]]);
    expect(usage.prompt_tokens).toBe(7);
    expect(upstream.received[0]?.target).toBe('/model/eu.cohere.embed-v4%3A0/invoke');
    expect(bodyOf(upstream)).toEqual({
      texts: ['a', 'b'],
      input_type: 'search_document',
      embedding_types: ['float'],
      output_dimension: 512,
    });
    expect(await gate.accessLine(1)).toMatchObject({ 'gen_ai.usage.input_tokens': '7' });
  });

  test('a model of the configuration embeds queries with Cohere', async () => {
    await using upstream = await llmProvider(answering(COHERE_ANSWER));
    await using gate = await bedrock(upstream, COHERE, {
      finalTransformation: { input_type: '"search_query"' },
    });
    await openAi(gate).embeddings.create({ model: 'any', input: ['a', 'b'] });
    expect(bodyOf(upstream)).toMatchObject({ input_type: 'search_query' });
    // Without the header, as for other providers that report no tokens: two texts of one byte each.
    expect(await gate.accessLine(1)).toMatchObject({ 'gen_ai.usage.input_tokens': '1' });
  });

  test('embedding models of Google on Vertex AI embed texts with predict', async () => {
    await using upstream = await llmProvider(answering(VERTEX_ANSWER));
    await using gate = await vertex(upstream);
    const { data, usage } = await openAi(gate).embeddings.create({
      model: 'any',
      input: ['a', 'b'],
      dimensions: 768,
    });
    expect(data.map(({ embedding }) => embedding)).toEqual([[0.5], [1.5]]);
    expect(usage.prompt_tokens).toBe(4);
    expect(upstream.received[0]).toMatchObject({
      target: '/v1/p/publishers/google/models/gemini-embedding-001:predict',
      headers: { authorization: 'Bearer ya29.key' },
    });
    expect(bodyOf(upstream)).toEqual({
      instances: [{ content: 'a' }, { content: 'b' }],
      parameters: { autoTruncate: false, outputDimensionality: 768 },
    });
  });

  test('a server with batchEmbedContents gets one request for each text', async () => {
    const answer =
      '{"embeddings":[{"values":[0.5]},{"values":[1.5]}],"usageMetadata":{"promptTokenCount":2}}';
    await using upstream = await llmProvider(answering(answer));
    await using gate = await llmGateway(upstream, {
      model: { provider: { custom: { formats: [{ type: 'batchEmbedContents' }] } } },
      params: { model: 'embedder' },
    });
    const { data, usage } = await openAi(gate).embeddings.create({ model: 'any', input: ['a', 'b'] });
    expect(data.map(({ embedding }) => embedding)).toEqual([[0.5], [1.5]]);
    expect(usage.prompt_tokens).toBe(2);
    expect(upstream.received[0]?.target).toBe('/v1/models/embedder:batchEmbedContents');
    const request = (text: string): object => ({ model: 'models/embedder', content: { parts: [{ text }] } });
    expect(bodyOf(upstream)).toEqual({ requests: [request('a'), request('b')] });
  });
});

describe('clients of the Gemini API get embeddings', () => {
  test('@google/genai embeds texts with the built-in model', async () => {
    await using gate = await modelsGateway([{ name: '*', provider: 'echo' }]);
    const { embeddings } = await google(gate).models.embedContent({ model: 'm', contents: ['a b', 'c'] });
    expect(embeddings?.map(({ values }) => values)).toEqual([
      [0.03, 0.2, 0.097],
      [0.01, 0.1, 0.099],
    ]);
    const one = await post(gate, '/v1beta/models/m:embedContent', { content: { parts: [{ text: 'a b' }] } });
    expect(JSON.parse(one.text)).toEqual({
      embedding: { values: [0.03, 0.2, 0.097] },
      usageMetadata: { promptTokenCount: 2 },
    });
    expect(await gate.accessLine(2)).toMatchObject({
      'gen_ai.operation.name': 'embeddings',
      'gen_ai.usage.input_tokens': '2',
    });
  });

  test('@google/genai embeds texts with a provider of the OpenAI API', async () => {
    await using upstream = await llmProvider(answering(OPENAI_ANSWER));
    await using gate = await llmGateway(upstream, {
      model: { provider: 'oaiCompat' },
      params: { model: 'text-embedding-3-small' },
    });
    const { embeddings } = await google(gate).models.embedContent({
      model: 'any',
      contents: ['a', 'b'],
      config: { outputDimensionality: 256 },
    });
    expect(embeddings?.map(({ values }) => values)).toEqual([[0.5], [1.5]]);
    expect(upstream.received[0]?.target).toBe('/v1/embeddings');
    expect(bodyOf(upstream)).toEqual({
      model: 'text-embedding-3-small',
      input: ['a', 'b'],
      dimensions: 256,
      encoding_format: 'float',
    });
    expect(await gate.accessLine(1)).toMatchObject({ 'gen_ai.usage.input_tokens': '4' });
  });

  test('task and title reach Vertex AI, and the task Cohere', async () => {
    const body = {
      content: { role: 'user', parts: [{ text: 'a' }] },
      task_type: 'RETRIEVAL_DOCUMENT',
      title: 'Letters',
    };
    await using google = await llmProvider(
      answering(JSON.stringify({ predictions: [{ embeddings: { values: [0.5] } }] })),
    );
    await using toGoogle = await vertex(google, 'text-embedding-005');
    const reply = await post(toGoogle, '/v1beta/models/m:embedContent', body);
    expect(JSON.parse(reply.text)).toEqual({ embedding: { values: [0.5] } });
    expect(bodyOf(google)['instances']).toEqual([
      { content: 'a', task_type: 'RETRIEVAL_DOCUMENT', title: 'Letters' },
    ]);
    await using aws = await llmProvider(answering('{"embeddings":{"float":[[0.5]]}}'));
    await using toAws = await bedrock(aws, COHERE);
    const query = { content: body.content, taskType: 'RETRIEVAL_QUERY' };
    expect((await post(toAws, '/v1beta/models/m:embedContent', query)).status).toBe(200);
    expect(bodyOf(aws)).toMatchObject({ texts: ['a'], input_type: 'search_query' });
  });

  test('the Gemini API itself gets batches unchanged, with its own name of the model in each request', async () => {
    await using upstream = await llmProvider(
      answering('{"embeddings":[{"values":[0.5]}],"usageMetadata":{"promptTokenCount":9}}'),
    );
    await using gate = await llmGateway(upstream, {
      model: { provider: 'gemini' },
      params: {
        apiKey: 'AIza-key',
        model: 'gemini-embedding-001',
        baseUrl: `http://${upstream.address}/v1beta`,
      },
    });
    const more = { content: { parts: [{ text: 'a' }] }, taskType: 'CODE_RETRIEVAL_QUERY' };
    const reply = await post(gate, '/v1beta/models/alias:batchEmbedContents', {
      requests: [{ model: 'models/another', ...more }],
    });
    expect(JSON.parse(reply.text)).toMatchObject({ embeddings: [{ values: [0.5] }] });
    expect(upstream.received[0]).toMatchObject({
      target: '/v1beta/models/gemini-embedding-001:batchEmbedContents',
      headers: { 'x-goog-api-key': 'AIza-key' },
    });
    expect(bodyOf(upstream)).toEqual({ requests: [{ model: 'models/gemini-embedding-001', ...more }] });
    expect(await gate.accessLine(1)).toMatchObject({ 'gen_ai.usage.input_tokens': '9' });
  });
});

describe('requests for embeddings that cannot be translated', () => {
  const content = { parts: [{ text: 'a' }] };

  test.each([
    ['several texts for Titan', TITAN, '/v1/embeddings', { input: ['a', 'b'] }, 'input[1]'],
    ['token numbers', COHERE, '/v1/embeddings', { input: [1, 2] }, 'input[0]'],
    ['unknown members', COHERE, '/v1/embeddings', { input: 'a', extra: 1 }, 'extra'],
    [
      'an unknown encoding',
      COHERE,
      '/v1/embeddings',
      { input: 'a', encoding_format: 'int8' },
      'encoding_format: "int8"',
    ],
    ['a missing input', COHERE, '/v1/embeddings', {}, 'input'],
    ['tasks of Titan', TITAN, ':embedContent', { content, taskType: 'CLUSTERING' }, 'taskType'],
    [
      'a task that Cohere does not have',
      COHERE,
      ':embedContent',
      { content, taskType: 'FACT_VERIFICATION' },
      'taskType: "FACT_VERIFICATION"',
    ],
    ['titles', COHERE, ':embedContent', { content, title: 'x' }, 'title'],
    [
      'several parts of a content',
      COHERE,
      ':embedContent',
      { content: { parts: [{ text: 'a' }, { text: 'b' }] } },
      'content.parts[1]',
    ],
    [
      'images',
      COHERE,
      ':embedContent',
      { content: { parts: [{ inlineData: {} }] } },
      'content.parts[0].text',
    ],
    [
      'different tasks in a batch',
      COHERE,
      ':batchEmbedContents',
      { requests: [{ content }, { content, taskType: 'CLUSTERING' }] },
      'requests[1].taskType',
    ],
    [
      'different lengths in a batch',
      COHERE,
      ':batchEmbedContents',
      { requests: [{ content }, { content, outputDimensionality: 256 }] },
      'requests[1].outputDimensionality',
    ],
  ])('%s are refused by name', async (_, model, path, body, named) => {
    await using upstream = await llmProvider();
    await using gate = await bedrock(upstream, model);
    const isGemini = path.startsWith(':');
    const reply = isGemini
      ? await post(gate, `/v1beta/models/m${path}`, body)
      : await post(gate, path, { model: 'm', ...body });
    expect(reply.status).toBe(400);
    expect(errorOf(reply).message).toContain(`\`${named}\` cannot be translated from`);
    expect(upstream.received).toEqual([]);
  });

  test('a model of Vertex AI without predict is refused', async () => {
    await using upstream = await llmProvider();
    await using gate = await vertex(upstream, 'gemini-2.5-pro');
    const reply = await post(gate, '/v1/embeddings', { model: 'm', input: 'a' });
    expect([reply.status, errorOf(reply).code]).toEqual([400, 'unsupported_endpoint']);
  });
});

describe('replies without embeddings', () => {
  test('an error of Bedrock has the format of the client', async () => {
    await using upstream = await llmProvider(answering('{"message":"Too many requests."}', 429));
    await using gate = await bedrock(upstream, TITAN);
    const reply = await post(gate, '/v1/embeddings', { model: 'm', input: 'a' });
    expect([reply.status, errorOf(reply).message]).toEqual([429, 'Too many requests.']);
    const gemini = await post(gate, '/v1beta/models/m:embedContent', { content: { parts: [{ text: 'a' }] } });
    expect(JSON.parse(gemini.text)).toEqual({
      error: { code: 429, message: 'Too many requests.', status: 'RESOURCE_EXHAUSTED' },
    });
  });

  test.each([
    ['no JSON', 'hello', 'the response is not a JSON object'],
    ['a vector of texts', '{"embedding":["a"]}', '`embedding` is not a list of numbers'],
    ['no vector', '{}', '`embedding` is not a list'],
  ])('a reply with %s is a 502, and the log says why', async (_, body, why) => {
    await using upstream = await llmProvider(answering(body));
    await using gate = await bedrock(upstream, TITAN);
    const reply = await post(gate, '/v1/embeddings', { model: 'm', input: 'a' });
    expect([reply.status, errorOf(reply).code]).toEqual([502, 'upstream_failed']);
    expect((await gate.accessLine(1))['error.detail']).toContain(why);
  });

  test('a reply with fewer vectors than texts is a 502', async () => {
    await using upstream = await llmProvider(answering('{"embeddings":{"float":[[0.5]]}}'));
    await using gate = await bedrock(upstream, COHERE);
    const reply = await post(gate, '/v1/embeddings', { model: 'm', input: ['a', 'b'] });
    expect(reply.status).toBe(502);
    expect((await gate.accessLine(1))['error.detail']).toContain('1 vectors for 2 texts');
  });
});

describe('guardrails on embeddings of the Gemini API', () => {
  const CARD = '4111 1111 1111 1111';
  const guardrails = {
    request: [{ regex: { action: 'mask', rules: [{ builtin: 'creditCard' }] } }],
  };
  const content = { parts: [{ text: `Is ${CARD} valid?` }] };

  test.each([
    ['embedContent', { content, title: `About ${CARD}` }],
    ['batchEmbedContents', { requests: [{ content }, { content, outputDimensionality: 8 }] }],
  ])('card numbers are masked in %s', async (method, body) => {
    await using upstream = await llmProvider(answering('{}'));
    await using gate = await llmGateway(upstream, { model: { guardrails } });
    await post(gate, `/v1beta/models/m:${method}`, body);
    const sent = JSON.stringify(bodyOf(upstream));
    expect(sent).not.toContain('4111');
    expect(sent).toContain('Is <CREDIT_CARD> valid?');
  });
});

// BerriAI/litellm#42426
test('floats of a provider that ignores `encoding_format` are packed for a client that asks for Base64', async () => {
  const vector = [0.5, -1.5, 2, 0.25];
  const long = Array.from({ length: 20_000 }, (_, index) => ({
    object: 'embedding',
    index,
    embedding: vector,
  }));
  const answerOf = (data: object[]): string =>
    JSON.stringify({ object: 'list', data, usage: { prompt_tokens: 4 } });
  let data: object[] = [{ embedding: vector }];
  await using provider = await llmProvider((...call) => answering(answerOf(data))(...call));
  for (const llm of [{}, { guardrails: { response: [{ regex: { rules: [{ builtin: 'ssn' }] } }] } }]) {
    await using served = await llmGateway(provider, { llm });
    const ask = async (encoding_format?: string): Promise<string> =>
      (await post(served, '/v1/embeddings', { model: 'm', input: 'a', encoding_format })).text;
    data = [{ embedding: vector, index: 0 }];
    const packed = 'AAAAPwAAwL8AAABAAACAPg==';
    expect(await ask('base64')).toBe(answerOf([{ embedding: packed, index: 0 }]));
    for (const other of [undefined, 'float']) expect(await ask(other)).toBe(answerOf(data));
    data = long;
    expect(JSON.parse(await ask('base64')).data[19_999]).toEqual({ ...long[19_999], embedding: packed });
    data = [{ embedding: packed, index: 0 }];
    expect(await ask('base64')).toBe(answerOf(data));
    expect((await served.accessLine(1))['gen_ai.usage.input_tokens']).toBe('4');
  }
});
