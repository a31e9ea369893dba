import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { GatewayConfig } from '../../src/library/index.ts';
import { replayCassette, type StubModel, stubModel, testGateway } from '../../src/library/testing/index.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { until } from '../kit/until.ts';
import { httpUpstream } from '../kit/upstream.ts';

// What users of other recorders have reported. Each test names the thread.

const chats = (model: StubModel): GatewayConfig => ({
  gateways: { default: { port: 3000 } },
  llm: { models: [{ name: '*', ...model.as('openAI') }] },
});

const service = (address: string): GatewayConfig => ({
  gateways: { default: { port: 3000, routes: [{ backends: [{ host: address }] }] } },
});

const ask = (url: string, more: object = {}): Promise<Response> =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...more }),
  });

/** The exchanges of a recording. */
const linesOf = (file: string): readonly { response: { status: number; cut?: string; body?: object } }[] =>
  readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => JSON.parse(line));

// parroty/exvcr#167
test('what is redacted in the file still reaches the client that is recorded', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'cassette.jsonl');
  await using upstream = await httpUpstream((_, response) => {
    response.setHeader('content-type', 'application/json');
    response.end('{"access_token":"canary-token"}');
  });
  {
    await using gateway = await testGateway(service(upstream.address), { record: file });
    expect(await (await fetch(`${gateway.url}/token`)).json()).toEqual({ access_token: 'canary-token' });
  }
  expect(readFileSync(file, 'utf8')).not.toContain('canary-token');
});

// kevin1024/vcrpy#502, kevin1024/vcrpy#989
test('events of a stream reach the client that is recorded while the stream goes on', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'cassette.jsonl');
  const { promise: isRead, resolve: read } = Promise.withResolvers<void>();
  await using upstream = await httpUpstream(async (_, response) => {
    response.setHeader('content-type', 'text/event-stream');
    response.write('data: first\n\n');
    // Otherwise there is no second event.
    await isRead;
    response.end('data: 2.0\n\n');
  });
  {
    await using gateway = await testGateway(service(upstream.address), { record: file });
    let text = '';
    for await (const chunk of (await fetch(gateway.url)).body ?? []) {
      text += new TextDecoder().decode(chunk);
      if (text.includes('first')) read();
    }
    expect(text).toBe('data: first\n\ndata: 2.0\n\n');
  }
  await using replay = await replayCassette(file);
  // betamaxpy/betamax#95: a stream can be replayed again.
  for (let time = 0; time < 2; time += 1)
    expect(await (await fetch(replay.url)).text()).toBe('data: first\n\ndata: 2.0\n\n');
});

// datahub-project/datahub#18641, vcr/vcr#971: with the other test of equal requests. BerriAI/litellm#37525
test('equal requests at the same time get one recorded answer each', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'cassette.jsonl');
  const wanted = Array.from({ length: 8 }, (_, at) => `answer ${at}`);
  {
    await using model = await stubModel();
    model.answer(...wanted);
    await using gateway = await testGateway(chats(model), { record: file });
    for (const _ of wanted) await (await ask(gateway.url)).text();
  }
  await using replay = await replayCassette(file);
  const answers = await Promise.all(wanted.map(async () => (await ask(replay.url)).text()));
  const texts = answers.map((text) => JSON.parse(text).choices[0].message.content);
  expect(texts.toSorted()).toEqual(wanted);
});

test('a provider that breaks off breaks off again', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'cassette.jsonl');
  const reading = async (url: string): Promise<string> => {
    const answer = await ask(url, { stream: true });
    let text = '';
    try {
      for await (const chunk of answer.body ?? []) text += new TextDecoder().decode(chunk);
      return text;
    } catch {
      return `${text} and then an error`;
    }
  };
  let recorded: string;
  {
    await using model = await stubModel('break');
    await using gateway = await testGateway(chats(model), { record: file });
    recorded = await reading(gateway.url);
  }
  await using replay = await replayCassette(file);
  expect(await reading(replay.url)).toBe(recorded);
  expect(recorded).not.toContain('[DONE]');
});

test('a service that breaks off in the middle of a body breaks off again', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'cassette.jsonl');
  await using upstream = await httpUpstream((_, response) => {
    response.setHeader('content-length', '100');
    response.setHeader('content-type', 'text/plain');
    response.write('half', () => response.destroy());
  });
  const reading = async (url: string): Promise<string> => {
    const reader = (await fetch(url)).body?.getReader();
    const first = await reader?.read();
    const next = await reader?.read().then(
      ({ done }) => `done: ${done}`,
      () => 'broken',
    );
    return `${new TextDecoder().decode(first?.value)} ${next}`;
  };
  {
    await using gateway = await testGateway(service(upstream.address), { record: file });
    expect(await reading(gateway.url)).toBe('half broken');
  }
  expect(linesOf(file)).toMatchObject([{ response: { status: 200, cut: 'server', body: { text: 'half' } } }]);
  await using replay = await replayCassette(file);
  expect(await reading(replay.url)).toBe('half broken');
});

test('a client that leaves is recorded, and waits again in a replay', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'cassette.jsonl');
  const leaving = async (url: string, isAsked: () => boolean | Promise<boolean>): Promise<unknown> => {
    const controller = new AbortController();
    const answer = fetch(`${url}/slow`, { signal: controller.signal }).catch((error: Error) => error.name);
    await until(isAsked);
    controller.abort();
    return answer;
  };
  {
    await using upstream = await httpUpstream(() => undefined);
    await using gateway = await testGateway(service(upstream.address), { record: file });
    expect(await leaving(gateway.url, () => upstream.received.length === 1)).toBe('AbortError');
    await gateway.idle();
  }
  expect(linesOf(file)).toMatchObject([{ response: { status: 0, cut: 'client' } }]);
  await using replay = await replayCassette(file);
  // A request after it has been answered.
  const isAsked = async () => (await fetch(`${replay.url}/other`)).status === 404;
  expect(await leaving(replay.url, isAsked)).toBe('AbortError');
});

test('a gateway that a reload adds is not recorded, and the end of the recording says so', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'cassette.jsonl');
  const routes = [{ policies: { directResponse: { status: 200, body: 'x' } } }];
  const one = { first: { port: 3000, routes } };
  const gateway = await testGateway({ gateways: one }, { record: file });
  await (await fetch(gateway.url)).text();
  await gateway.reload({ gateways: { ...one, second: { port: 3001, routes } } });
  expect(await (await fetch(gateway.urls['second'] as string)).text()).toBe('x');
  await expect(gateway.close()).rejects.toThrow(
    /cassette\.jsonl is not complete: the gateway `second` was added while it was recorded/,
  );
  await using replay = await replayCassette(file);
  expect(Object.keys(replay.urls)).toEqual(['first']);
  expect(await (await fetch(replay.url)).text()).toBe('x');
});

test('what is too large to keep reaches the client, is mentioned, and is refused in a replay', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'cassette.jsonl');
  const size = 17 * 1024 * 1024;
  await using upstream = await httpUpstream((request, response) => {
    if (request.url === '/up') response.end('taken');
    else response.end(Buffer.alloc(size, 'a'));
  });
  {
    await using gateway = await testGateway(service(upstream.address), { record: file });
    expect((await (await fetch(`${gateway.url}/down`)).arrayBuffer()).byteLength).toBe(size);
    const sent = await fetch(`${gateway.url}/up`, { method: 'POST', body: Buffer.alloc(size, 'b') });
    expect(await sent.text()).toBe('taken');
  }
  expect(upstream.received.at(-1)?.body.length).toBe(size);
  expect(readFileSync(file).byteLength).toBeLessThan(3_000);
  await using replay = await replayCassette(file);
  const refused = await fetch(`${replay.url}/down`);
  expect([refused.status, await refused.text()]).toEqual([
    501,
    expect.stringMatching(/cassette\.jsonl:2 has no body: it is larger than 16777216 bytes/),
  ]);
});
