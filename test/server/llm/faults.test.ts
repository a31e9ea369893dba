import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import {
  answering,
  bodyOf,
  CHAT,
  chat,
  chunk,
  completion,
  DONE,
  EMPTY_ANSWER,
  errorOf,
  guardrail,
  llmGateway,
  llmProvider,
  modelsGateway,
  streaming,
  webhook,
} from '../../kit/llm-provider.ts';
import { worstLoopDelay } from '../../kit/loop-delay.ts';
import { serve } from '../../kit/process.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream, rawUpstream } from '../../kit/upstream.ts';

describe('headers of an LLM provider', () => {
  const answer = (fields: string): string =>
    `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n${fields}content-length: ${EMPTY_ANSWER.length}\r\n\r\n${EMPTY_ANSWER}`;

  test.each([
    ['one of 64 KiB', `x-long: ${'x'.repeat(65_536)}\r\n`],
    ['300 of them with 20 KiB', `x-many: ${'x'.repeat(60)}\r\n`.repeat(300)],
  ])('provider headers over the size limit are a 502: %s', async (_, fields) => {
    await using provider = await rawUpstream((socket) => socket.end(answer(fields)));
    await using served = await llmGateway(provider);
    const reply = await chat(served);
    expect(reply.status).toBe(502);
    expect(errorOf(reply).type).toBe('api_error');
  });

  test('any number of small provider headers is forwarded, except cookies and connection headers', async () => {
    const fields = `${'x-many: 1\r\n'.repeat(300)}set-cookie: a=b\r\nconnection: x-own\r\nx-own: 1\r\n`;
    await using provider = await rawUpstream((socket) => socket.end(answer(fields)));
    await using served = await llmGateway(provider);
    const reply = await chat(served);
    expect(reply.status).toBe(200);
    expect(reply.rawHeaders.filter((part) => part === 'x-many')).toHaveLength(300);
    expect(reply.headers).not.toHaveProperty('set-cookie');
    expect(reply.headers).not.toHaveProperty('x-own');
  });
});

describe('input of guardrails', () => {
  const guardedGateway = async (seen: string[]) => {
    const provider = await llmProvider();
    const hook = await guardrail(({ messages }) => {
      seen.push(...(messages ?? []).map(({ content }) => content));
      return {};
    });
    const served = await llmGateway(provider, { model: { guardrails: { request: [webhook(hook)] } } });
    const dispose = async (): Promise<void> => {
      await served.close();
      await Promise.all([hook.close(), provider.close()]);
    };
    return { served, provider, [Symbol.asyncDispose]: dispose };
  };

  test('a guardrail receives the text as sent, including invisible characters and base64', async () => {
    const seen: string[] = [];
    await using guarded = await guardedGateway(seen);
    const odd = ['i\u200bg\u200bn\u200bo\u200br\u200be', 'aWdub3Jl', '\u202Eevil', '\uFEFF🎉', 'a\u0000b'];
    const messages = odd.map((content) => ({ role: 'tool', tool_call_id: 'c', content }));
    await chat(guarded.served, { ...CHAT, messages });
    expect(seen).toEqual(odd);
    expect(bodyOf(guarded.provider)['messages']).toEqual(messages);
  });

  test('a guardrail receives a megabyte and ten thousand messages without delaying other requests', async () => {
    const seen: string[] = [];
    await using guarded = await guardedGateway(seen);
    const small = Array.from({ length: 10_000 }, (_, index) => ({ role: 'user', content: `m${index}` }));
    const large = [{ role: 'user', content: 'x'.repeat(1_000_000) }];
    // The first of its kind is compiled on the way.
    await chat(guarded.served, { ...CHAT, messages: small });
    for (const messages of [small, large]) {
      let delay = Number.POSITIVE_INFINITY;
      // Other load on the machine can only increase it.
      for (let round = 0; round < 3; round++) {
        seen.length = 0;
        delay = Math.min(delay, await worstLoopDelay(() => chat(guarded.served, { ...CHAT, messages })));
        expect(seen).toHaveLength(messages.length);
      }
      // 50 ms on an idle core, several times that on a busy one; provider, webhook and client share this process.
      expect(delay).toBeLessThan(500);
    }
  });
});

test('a slow webhook has a bounded number of concurrent calls and does not block other models', async () => {
  const held: (() => void)[] = [];
  let atOnce = 0;
  let most = 0;
  await using hook = await httpUpstream((_, response) => {
    atOnce += 1;
    most = Math.max(most, atOnce);
    held.push(() => {
      atOnce -= 1;
      response.end('{"action":{}}');
    });
  });
  const models = [
    { name: 'guarded', provider: 'echo', guardrails: { request: [webhook(hook)] } },
    { name: 'free', provider: 'echo' },
  ];
  await using served = await modelsGateway(models, {}, {}, { limits: { guardrailConnections: 20 } });
  const calls = Array.from({ length: 200 }, () => chat(served, { ...CHAT, model: 'guarded' }));
  await until(() => held.length === 20);
  const others = await Promise.all(
    Array.from({ length: 50 }, () => chat(served, { ...CHAT, model: 'free' })),
  );
  expect(others.every(({ status }) => status === 200)).toBe(true);
  expect(held).toHaveLength(20);
  let isOver = false;
  const replies = Promise.all(calls).finally(() => {
    isOver = true;
  });
  await until(() => {
    for (const release of held.splice(0)) release();
    return isOver;
  });
  expect((await replies).every(({ status }) => status === 200)).toBe(true);
  expect(most).toBe(20);
});

test('a provider whose name does not resolve is a 503', async () => {
  await using served = await llmGateway({ address: 'nowhere.invalid:80' });
  const reply = await chat(served);
  expect(reply.status).toBe(503);
  expect(errorOf(reply).message).toMatch(/^upstream call failed: the host name does not resolve/);
});

/** Asks for a stream and returns once its head is here. */
async function streamOf({ url }: { url: string }): Promise<IncomingMessage> {
  const call = request(`${url}/v1/chat/completions`, { method: 'POST' });
  call.on('error', () => undefined).end(JSON.stringify({ ...CHAT, stream: true }));
  const [response] = (await once(call, 'response')) as [IncomingMessage];
  return response.on('error', () => undefined);
}

test('a provider that crashes during streams ends each one with an error event', async () => {
  const part = chunk({ content: 'Hel' }) + chunk({ content: 'lo' });
  const open = new Set<Socket>();
  await using provider = await rawUpstream((socket) => {
    open.add(socket);
    const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked';
    socket.write(`${head}\r\n\r\n${Buffer.byteLength(part).toString(16)}\r\n${part}\r\n`);
  });
  await using served = await llmGateway(provider);
  const clients = await Promise.all(Array.from({ length: 50 }, () => streamOf(served)));
  const texts = clients.map(() => '');
  const ends = clients.map((response, index) => {
    response.setEncoding('utf8').on('data', (data: string) => {
      texts[index] += data;
    });
    return once(response, 'end');
  });
  await until(() => texts.every((text) => text === part));
  for (const socket of open) socket.resetAndDestroy();
  await Promise.all(ends);
  for (const text of texts) {
    expect(text.startsWith(part)).toBe(true);
    expect(JSON.parse(text.slice(part.length + 'data: '.length))).toMatchObject({
      error: { code: 'upstream_failed' },
    });
  }
  const line = await served.accessLine(50);
  expect(line).toMatchObject({
    reason: 'UpstreamFailure',
    'gw.ai.usage.estimated':
      'the response ended before the provider reported usage: the provider ended the stream early',
  });
});

/** A relay to a service that delays and splits its data and resets the connections of some requests. */
async function badNetwork(address: string, resets: (request: number) => boolean) {
  const [host = '', port = ''] = address.split(':');
  let requests = 0;
  let resetCount = 0;
  const sockets = new Set<Socket>();
  const slowly = (from: Socket, to: Socket, isRequest: boolean): void => {
    let last = Promise.resolve();
    from.on('data', (data: Buffer) => {
      const begins = isRequest && data.includes('POST ');
      if (begins) requests += 1;
      if (begins && resets(requests)) {
        resetCount += 1;
        from.resetAndDestroy();
        to.destroy();
        return;
      }
      for (let at = 0; at < data.length; at += 100) {
        const piece = data.subarray(at, at + 100);
        last = last.then(() => new Promise((resolve) => setTimeout(resolve, (at * 7) % 4)));
        last = last.then(() => void (to.destroyed || to.write(piece)));
      }
    });
    from.on('end', () => void last.then(() => to.end()));
  };
  const server = createServer((client) => {
    const service = connect(Number(port), host);
    for (const socket of [client, service]) {
      sockets.add(socket);
      socket.setNoDelay(true).on('error', () => undefined);
    }
    client.on('close', () => service.destroy());
    service.on('close', () => client.end());
    slowly(client, service, true);
    slowly(service, client, false);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `127.0.0.1:${(server.address() as { port: number }).port}`,
    get resets() {
      return resetCount;
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test('on an unreliable network only the broken requests fail, and the others are complete', async () => {
  await using provider = await llmProvider((incoming, response, received) => {
    const { seed: n } = JSON.parse(received.body) as { seed: number };
    const text = `answer ${n} ${'x'.repeat(n)}`;
    if (n % 2 === 0) return answering(completion(text))(incoming, response, received);
    return streaming((stream) => stream.end(chunk({ content: text }) + DONE))(incoming, response, received);
  });
  await using network = await badNetwork(provider.address, (count) => count % 25 === 0);
  await using served = await llmGateway(network);
  const ask = async (n: number): Promise<boolean> => {
    const reply = await chat(served, { ...CHAT, seed: n, stream: n % 2 === 1 });
    if (reply.status === 502) return false;
    const text = `answer ${n} ${'x'.repeat(n)}`;
    expect(reply.text).toBe(n % 2 === 0 ? completion(text) : chunk({ content: text }) + DONE);
    return true;
  };
  let failures = 0;
  for (let round = 0; round < 10; round += 1) {
    const results = await Promise.all(Array.from({ length: 30 }, (_, index) => ask(round * 30 + index)));
    failures += results.filter((isFine) => !isFine).length;
  }
  expect(network.resets).toBe(12);
  expect(failures).toBe(12);
});

test('a gateway without free file descriptors keeps its streams and recovers when clients disconnect', async () => {
  await using provider = await llmProvider(
    streaming((response) => {
      const beat = setInterval(() => response.write(chunk({ content: 'beat' })), 20);
      response.once('close', () => clearInterval(beat));
    }),
  );
  const config = {
    config: { adminAddr: 'off' },
    llm: {
      port: 0,
      models: [
        { name: 'acme-*', provider: 'oaiCompat', params: { baseUrl: `http://${provider.address}/v1` } },
        { name: 'echo', provider: 'echo' },
      ],
    },
  };
  await using running = await serve(JSON.stringify(config), { descriptors: 128 });
  const stream = await streamOf(running);
  let beats = 0;
  stream.on('data', () => {
    beats += 1;
  });
  await until(() => beats > 2);
  const { hostname, port } = new URL(running.url);
  const crowd = Array.from({ length: 300 }, () =>
    connect(Number(port), hostname).on('error', () => undefined),
  );
  // Only that many connections fit; the others wait or are refused.
  await until(() => crowd.filter(({ readyState }) => readyState === 'open').length > 80);
  const before = beats;
  await until(() => beats > before + 5);
  const lines = running.stderr.split('\n').length;
  for (const socket of crowd) socket.destroy();
  await until(
    async () => (await chat(running, { ...CHAT, model: 'echo' }).catch(() => undefined))?.status === 200,
    2_000,
  );
  expect(running.stderr.split('\n').length - lines).toBeLessThan(5);
  const after = beats;
  await until(() => beats > after + 5);
  stream.destroy();
});
