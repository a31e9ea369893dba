import { createHash } from 'node:crypto';
import { Agent, type IncomingMessage, request } from 'node:http';
import type { Writable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { proxyGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

/** Resolves as soon as the response head has arrived. */
function head(url: string, options: object = {}): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request(url, { agent: new Agent(), ...options }, resolve)
      .on('error', reject)
      .end();
  });
}

describe('streaming', () => {
  test('chunks of a response arrive as they are sent', async () => {
    let finish = (): void => undefined;
    await using backend = await httpUpstream((_, response) => {
      response.write('first');
      finish = () => void response.end('last');
    });
    await using gate = await proxyGateway(backend.address);
    const response = await head(gate.url);
    let text = '';
    response.on('data', (chunk) => {
      text += chunk;
    });
    await until(() => text === 'first');
    finish();
    await until(() => response.complete);
    expect(text).toBe('firstlast');
  });

  test('chunks of request and response flow in both directions simultaneously', async () => {
    await using backend = await httpUpstream(
      (incoming, response) => {
        response.flushHeaders();
        incoming.on('data', (chunk) => response.write(`<${chunk}>`)).on('end', () => response.end('.'));
      },
      { streaming: true },
    );
    await using gate = await proxyGateway(backend.address);
    const call = request(gate.url, { method: 'POST', agent: new Agent() });
    let text = '';
    let isComplete = false;
    call.on('response', (response) => {
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => {
        isComplete = true;
      });
    });
    for (const piece of ['a', 'b', 'c']) {
      const before = text;
      call.write(piece);
      await until(() => text === `${before}<${piece}>`);
    }
    call.end();
    await until(() => isComplete);
    expect(text).toBe('<a><b><c>.');
  });

  test('a response head is forwarded before its body', async () => {
    await using backend = await httpUpstream((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    });
    await using gate = await proxyGateway(backend.address);
    let type: string | undefined;
    const call = request(gate.url, { agent: new Agent() }, (response) => {
      type = response.headers['content-type'];
    });
    call.on('error', () => undefined).end();
    await until(() => type === 'text/event-stream', 1000).finally(() => call.destroy());
  });
});

describe('backpressure on 100 MB', () => {
  const CHUNK = Buffer.alloc(64 * 1024, 'the quick brown fox ');
  const TOTAL = 1600 * CHUNK.length;

  /** Writes as fast as the other side reads; returns a function for the bytes written so far. */
  function pour(into: Writable): () => number {
    let sent = 0;
    const more = (): void => {
      while (sent < TOTAL) {
        sent += CHUNK.length;
        if (!into.write(CHUNK)) return void into.once('drain', more);
      }
      into.end();
    };
    more();
    return () => sent - into.writableLength;
  }

  /** The amount once it has not grown for 200 ms. */
  async function settled(amount: () => number): Promise<number> {
    let last = -1;
    let since = 0;
    await until(() => {
      const now = performance.now();
      if (amount() !== last) {
        last = amount();
        since = now;
      }
      return last > 0 && now - since > 200;
    });
    return last;
  }

  // Socket buffers on both sides, with a margin; a fully buffered body would be 100 MB.
  const IN_BETWEEN = 32e6;

  test('backpressure of a paused reader limits what is read from the backend, and all data arrives', async () => {
    let sent = (): number => 0;
    await using backend = await httpUpstream((_, response) => {
      sent = pour(response);
    });
    await using gate = await proxyGateway(backend.address);
    const response = await head(gate.url);
    const between = await settled(() => sent());
    console.info(`100 MB down: ${(between / 1e6).toFixed(1)} MB taken before anything is read`);
    expect(between).toBeLessThan(IN_BETWEEN);
    const received = createHash('sha256');
    let size = 0;
    for await (const chunk of response) {
      received.update(chunk);
      size += chunk.length;
    }
    expect(size).toBe(TOTAL);
    expect(received.digest('hex')).toBe(expected());
  });

  test('backpressure of a slow backend limits what is read from the client, and all data arrives', async () => {
    const received = createHash('sha256');
    let start = (): void => undefined;
    const isTime = new Promise<void>((resolve) => {
      start = resolve;
    });
    await using backend = await httpUpstream(
      async (incoming, response) => {
        await isTime;
        for await (const chunk of incoming) received.update(chunk);
        response.end();
      },
      { streaming: true },
    );
    await using gate = await proxyGateway(backend.address);
    const call = request(gate.url, { method: 'PUT', agent: new Agent() });
    const answer = new Promise<IncomingMessage>((resolve, reject) => {
      call.on('response', resolve).on('error', reject);
    });
    const between = await settled(pour(call));
    console.info(`100 MB up: ${(between / 1e6).toFixed(1)} MB taken before anything is read`);
    expect(between).toBeLessThan(IN_BETWEEN);
    start();
    expect((await answer).statusCode).toBe(200);
    expect(received.digest('hex')).toBe(expected());
  });

  function expected(): string {
    const hash = createHash('sha256');
    for (let size = 0; size < TOTAL; size += CHUNK.length) hash.update(CHUNK);
    return hash.digest('hex');
  }
});

describe('client disconnects', () => {
  test('a client disconnect before the response head aborts the backend call', async () => {
    let left = false;
    await using backend = await httpUpstream((_, response) => {
      response.on('close', () => {
        left = true;
      });
    });
    await using gate = await proxyGateway(backend.address);
    const call = request(gate.url, { agent: new Agent() });
    call.on('error', () => undefined).end();
    await until(() => backend.received.length === 1);
    call.destroy();
    await until(() => left);
    expect(await gate.accessLine(1)).toMatchObject({ 'http.status': '499' });
  });

  test('a client disconnect during the response body aborts the backend call', async () => {
    let left = false;
    await using backend = await httpUpstream((_, response) => {
      const timer = setInterval(() => response.write('more'), 5);
      response.on('close', () => {
        clearInterval(timer);
        left = true;
      });
    });
    await using gate = await proxyGateway(backend.address);
    const response = await head(gate.url);
    await new Promise((resolve) => response.once('data', resolve));
    response.destroy();
    await until(() => left);
    await gate.accessLine(1);
    expect(gate.accessLog).toHaveLength(1);
  });

  test('a client disconnect during the request body aborts the backend call', async () => {
    let broken = false;
    await using backend = await httpUpstream(
      (incoming) => {
        incoming.resume().on('error', () => {
          broken = true;
        });
      },
      { streaming: true },
    );
    await using gate = await proxyGateway(backend.address);
    const call = request(gate.url, { method: 'POST', agent: new Agent() }).on('error', () => undefined);
    call.write('some');
    await until(() => backend.received.length === 1);
    call.destroy();
    await until(() => broken);
  });

  test('a client disconnect does not affect other calls', async () => {
    await using backend = await httpUpstream(({ url }, response) =>
      url === '/hang' ? undefined : response.end('ok'),
    );
    await using gate = await proxyGateway(backend.address);
    const call = request(`${gate.url}/hang`, { agent: new Agent() }).on('error', () => undefined);
    call.end();
    await until(() => backend.received.length === 1);
    const others = Promise.all(Array.from({ length: 10 }, () => send(gate.url)));
    call.destroy();
    expect((await others).map(({ status }) => status)).toEqual(Array(10).fill(200));
  });
});
