import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import OpenAI from 'openai';
import { describe, expect, test, vi } from 'vitest';
import type { GatewayConfig } from '../../src/library/index.ts';
import { replayCassette, stubModel, testGateway } from '../../src/library/testing/index.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { httpUpstream } from '../kit/upstream.ts';

const provider = (address: string): GatewayConfig => ({
  llm: {
    port: 3000,
    models: [{ name: '*', provider: 'openAI', params: { apiKey: 'k', baseUrl: `http://${address}/v1` } }],
  },
});

const hi = { model: 'm', messages: [{ role: 'user' as const, content: 'Hi' }] };

/** The recorded responses. */
const responsesIn = (file: string): unknown[] =>
  readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => JSON.parse(line).response);

const chunk = {
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta: { content: 'hello' }, finish_reason: null }],
};

describe('the end of a recorded response', () => {
  test('a client that leaves after [DONE] has the whole stream, although the provider has not ended it', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'cassette.jsonl');
    await using upstream = await httpUpstream((_, response) => {
      response.setHeader('content-type', 'text/event-stream');
      // The gateway ends this connection when its client has left.
      response.write(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`);
    });
    const ask = (url: string): Promise<Response> =>
      fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ...hi, stream: true }),
      });
    {
      await using gateway = await testGateway(provider(upstream.address), { record: file });
      let text = '';
      const { body } = await ask(gateway.url);
      for await (const part of body?.pipeThrough(new TextDecoderStream()) ?? []) {
        text += part;
        if (text.includes('[DONE]')) break;
      }
      await gateway.idle();
    }
    expect(responsesIn(file)).toMatchObject([{ status: 200, events: [{ json: chunk }, { text: '[DONE]' }] }]);
    const [response] = responsesIn(file);
    expect(response).not.toHaveProperty('cut');
    expect(response).toHaveProperty('events.length', 2);
    await using replay = await replayCassette(file);
    expect(await (await ask(replay.url)).text()).toContain('data: [DONE]\n\n');
  });

  test('a client that leaves in the middle has what it got, and nothing that was written later', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'cassette.jsonl');
    await using upstream = await httpUpstream((_, response) => {
      response.setHeader('content-type', 'text/event-stream');
      response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    });
    {
      await using gateway = await testGateway(provider(upstream.address), { record: file });
      const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none' });
      for await (const _ of await client.chat.completions.create({ ...hi, stream: true })) break;
      await gateway.idle();
    }
    const [response] = responsesIn(file);
    expect(response).toMatchObject({ cut: 'client', events: [{ json: chunk }] });
    expect(response).toHaveProperty('events.length', 1);
  });

  test('a gateway that is closed at once writes requests that their clients have ended', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'cassette.jsonl');
    await using model = await stubModel('one two three four five');
    const config: GatewayConfig = {
      gateways: { default: { port: 3000 } },
      llm: { models: [{ name: '*', ...model.as('openAI') }] },
    };
    {
      await using gateway = await testGateway(config, { record: file });
      const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none' });
      for await (const _ of await client.chat.completions.create({ ...hi, stream: true })) break;
    }
    expect(responsesIn(file)).toHaveLength(1);
    model.answer('hang');
    {
      await using gateway = await testGateway(config, { record: file });
      const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 });
      const gone = client.chat.completions.create(hi, { timeout: 300 });
      await expect(gone).rejects.toThrow(/timed out/);
    }
    expect(responsesIn(file)).toMatchObject([{ status: 0, cut: 'client' }]);
  });

  test('of two recordings into one file, the earlier one ends with an error, and the other stays as it is', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'cassette.jsonl');
    await using model = await stubModel('one');
    const config: GatewayConfig = {
      gateways: { default: { port: 3000 } },
      llm: { models: [{ name: '*', ...model.as('openAI') }] },
    };
    const earlier = await testGateway(config, { record: file });
    await earlier.fetch('/v1/models');
    await earlier.idle();
    {
      await using later = await testGateway(config, { record: file });
      await later.fetch('/v1/models');
      await earlier.fetch('/v1/models');
      await expect(earlier.close()).rejects.toThrow(
        `${file} is not complete: another recording, or something else, has changed it`,
      );
      await later.fetch('/v1/models');
    }
    expect(responsesIn(file)).toHaveLength(2);
  });
});

test('a client that leaves while it sends its request leaves no open request behind', async () => {
  await using folder = await temporaryFolder();
  await using gateway = await testGateway(
    { gateways: { default: { port: 1, routes: [{ policies: { directResponse: { status: 200 } } }] } } },
    { record: join(folder.path, 'cassette.jsonl') },
  );
  const { port } = new URL(gateway.url);
  const socket = connect(Number(port), '127.0.0.1');
  await once(socket, 'connect');
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf');
  // Answered when the first request has been received, too.
  await (await fetch(gateway.url)).text();
  socket.destroy();
  await vi.waitFor(() => expect(gateway.requests.map(({ status }) => status).sort()).toEqual([200, 499]));
  await gateway.idle();
});
