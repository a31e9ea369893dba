import { createOpenAI } from '@ai-sdk/openai';
import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { generateText, streamText } from 'ai';
import OpenAI from 'openai';
import { expect, test } from 'vitest';
import { createGateway, type RequestFacts } from '../../src/library/index.ts';
import { chaos } from '../kit/config.ts';
import { answering, chunk, completion, DONE, FINISH, llmProvider, USAGE } from '../kit/llm-provider.ts';
import { until } from '../kit/until.ts';
import type { Answer } from '../kit/upstream.ts';

// The libraries that programs use, with the gateway in the same process and without a port.

test('the clients of OpenAI and of the AI SDK talk to a gateway through its fetch, also in streams', async () => {
  const stream: Answer = (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(chunk({ content: 'Hel' }) + chunk({ content: 'lo.' }) + FINISH + DONE);
  };
  await using provider = await llmProvider((request, response, received) =>
    (JSON.parse(received.body).stream === true ? stream : answering(completion('Hello.')))(
      request,
      response,
      received,
    ),
  );
  await using gateway = await createGateway(
    {
      llm: {
        models: [
          {
            name: '*',
            provider: 'openAI',
            params: { baseUrl: `http://${provider.address}/v1`, apiKey: 'k' },
          },
        ],
      },
    },
    { listen: false },
  );
  const told: RequestFacts[] = [];
  gateway.on('request', (facts) => told.push(facts));
  const baseURL = `${gateway.url}/v1`;
  const messages = [{ role: 'user' as const, content: 'Hi' }];

  const openai = new OpenAI({ baseURL, apiKey: 'none', fetch: gateway.fetch });
  const answer = await openai.chat.completions.create({ model: 'acme-mini', messages });
  expect(answer.choices[0]?.message.content).toBe('Hello.');

  const model = createOpenAI({ baseURL, apiKey: 'none', fetch: gateway.fetch }).chat('acme-mini');
  expect((await generateText({ model, messages })).text).toBe('Hello.');
  expect(await streamText({ model, messages }).text).toBe('Hello.');

  await until(() => told.length === 3);
  expect(told).toMatchObject([
    { protocol: 'llm', model: 'acme-mini', provider: 'openai', inputTokens: USAGE.prompt_tokens },
    { model: 'acme-mini' },
    { model: 'acme-mini', streamed: true },
  ]);
  expect(told[1]).not.toHaveProperty('streamed');
});

test('the MCP clients of both generations talk to a gateway through its fetch', async () => {
  await using gateway = await createGateway({ mcp: { targets: [chaos('well')] } }, { listen: false });
  const told: RequestFacts[] = [];
  gateway.on('request', (facts) => told.push(facts));
  const url = new URL('/mcp', gateway.url);
  const info = { name: 'test', version: '1' };
  const client1 = new Client1(info);
  await client1.connect(new Transport1(url, { fetch: gateway.fetch }));
  const client2 = new Client2(info);
  await client2.connect(new Transport2(url, { fetch: gateway.fetch }));
  for (const client of [client1, client2]) {
    const { content } = await client.callTool({ name: 'echo', arguments: { message: 'hi' } });
    expect(content).toEqual([{ type: 'text', text: 'hi' }]);
    await client.close();
  }
  await until(() => told.filter(({ tool }) => tool === 'echo').length === 2);
  expect(told.find(({ tool }) => tool === 'echo')).toMatchObject({
    protocol: 'mcp',
    target: 'well',
    status: 200,
  });
});
