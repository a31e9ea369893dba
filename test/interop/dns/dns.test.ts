import { createServer, get, type Server } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { type ServeProcess, serve } from '../../kit/process.ts';
import { type HttpReply, send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { resolver } from './resolver.ts';

// The command in a process of its own: it decides how many threads may look up names.

const PORT = 8080;
const SECOND = 1000;

/** A service on its own address of the loopback network, always on the same port. */
async function service(host: string, keepsFor = 5 * SECOND): Promise<Server & AsyncDisposable> {
  const server = createServer({ keepAliveTimeout: keepsFor }, (request, response) => {
    if (request.url?.endsWith('?stream') !== true) return response.end(host);
    const timer = setInterval(() => response.write(host), 500);
    return response.once('close', () => clearInterval(timer));
  });
  await new Promise<void>((resolve) => server.listen(PORT, host, resolve));
  return Object.assign(server, {
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

/** A gateway with a route `/<name>` to each of these hosts. */
function routesTo(names: readonly string[]): Promise<ServeProcess> {
  const routes = names.map((name) => ({
    matches: [{ path: { exact: `/${name}` } }],
    backends: [{ host: `${name}:${PORT}` }],
  }));
  const config = { connectionTerminationDeadline: '100ms' };
  return serve(JSON.stringify({ config, gateways: { default: { port: 0, routes } } }), {
    env: { ADMIN_ADDR: '127.0.0.1:0' },
  });
}

interface Timed extends HttpReply {
  /** In ms. */
  readonly took: number;
}

async function ask({ url }: { url: string }, name: string): Promise<Timed> {
  const started = performance.now();
  const reply = await send(`${url}/${name}`);
  return { ...reply, took: performance.now() - started };
}

const HUNG = Array.from({ length: 8 }, (_, index) => `hung${index}.test`);
const silentHosts = Object.fromEntries(HUNG.map((name) => [name, 'silent'] as const));

describe('failed host name lookups', () => {
  test.each([
    ['does not exist', 'NXDOMAIN', 'the host name does not resolve'],
    ['fails at the resolver', 'SERVFAIL', 'the host name temporarily does not resolve'],
    ['is refused by the resolver', 'REFUSED', 'resolve'],
  ] as const)('a host name that %s is answered with 503 immediately', async (_, record, words) => {
    await using _dns = await resolver({ 'bad.test': record });
    await using gate = await routesTo(['bad.test']);
    const { status, text, took } = await ask(gate, 'bad.test');
    expect(status).toBe(503);
    expect(text).toContain(words);
    expect(took).toBeLessThan(SECOND);
  });

  test('a host name lookup without an answer times out with 503 for all waiting requests and runs once', async () => {
    await using dns = await resolver({ 'hung.test': 'silent' });
    await using gate = await routesTo(['hung.test']);
    const replies = await Promise.all(Array.from({ length: 50 }, () => ask(gate, 'hung.test')));
    for (const { status, text, took } of replies) {
      expect(status).toBe(503);
      expect(text).toContain('the host name lookup timed out');
      expect(took).toBeLessThan(LIMITS.hostLookupTimeout + SECOND);
    }
    // While that lookup hangs, it is not waited for again.
    const next = await ask(gate, 'hung.test');
    expect(next.status).toBe(503);
    expect(next.took).toBeLessThan(SECOND);
    // glibc asks twice.
    expect(dns.asked.length).toBeLessThanOrEqual(2);
    // And it recovers.
    await using _up = await service('127.0.0.1');
    dns.records.set('hung.test', '127.0.0.1');
    await until(async () => (await ask(gate, 'hung.test')).status === 200, 15 * SECOND);
  }, 60_000);

  test('a host name lookup that is answered on the second query succeeds', async () => {
    await using _up = await service('127.0.0.1');
    await using dns = await resolver({ 'lossy.test': 'silent' });
    await using gate = await routesTo(['lossy.test']);
    const asked = ask(gate, 'lossy.test');
    await until(() => dns.asked.length > 0);
    dns.records.set('lossy.test', '127.0.0.1');
    const { status, took } = await asked;
    expect(status).toBe(200);
    expect(took).toBeGreaterThan(4 * SECOND);
  });
});

describe('hanging lookups', () => {
  test('eight hanging lookups delay neither other hosts nor files nor the access log', async () => {
    await using _up = await service('127.0.0.1');
    await using _dns = await resolver({
      ...silentHosts,
      'new.test': '127.0.0.1',
      'used.test': '127.0.0.1',
    });
    await using gate = await routesTo([...HUNG, 'new.test', 'used.test', 'from-hosts-file.test']);
    const admin = /admin server +(http:\/\/127\.0\.0\.1:\d+)/.exec(gate.stderr)?.[1] as string;
    expect((await ask(gate, 'used.test')).status).toBe(200);
    const hung = Promise.all(HUNG.map((name) => ask(gate, name)));
    await delay(200);

    const fresh = await ask(gate, 'new.test');
    const fromFile = await ask(gate, 'from-hosts-file.test');
    const kept: Timed[] = [];
    for (let count = 0; count < 200; count += 1) kept.push(await ask(gate, 'used.test'));
    const started = performance.now();
    const page = await send(`${admin}/ui/`);
    const file = performance.now() - started;
    const lines = gate.stdout.split('\n').length;
    const logged = performance.now();
    await ask(gate, 'used.test');
    await until(() => gate.stdout.split('\n').length > lines);
    const line = performance.now() - logged;

    const slowest = Math.max(...kept.map(({ took }) => took));
    console.info(
      `8 lookups hang: new host ${fresh.took.toFixed(0)} ms, /etc/hosts ${fromFile.took.toFixed(0)} ms, ` +
        `slowest of 200 ${slowest.toFixed(0)} ms, file ${file.toFixed(0)} ms, log line ${line.toFixed(0)} ms`,
    );
    expect([fresh.status, fromFile.status, page.status]).toEqual([200, 200, 200]);
    for (const took of [fresh.took, fromFile.took, slowest, file, line]) expect(took).toBeLessThan(500);
    for (const { status, took } of await hung) {
      expect(status).toBe(503);
      expect(took).toBeLessThan(LIMITS.hostLookupTimeout + SECOND);
    }
  }, 60_000);
});

describe('resolver failures after a successful lookup', () => {
  test('hosts stay reachable at their last address while the resolver fails, until it answers that they do not exist', async () => {
    // Every request needs a connection of its own.
    await using up = await service('127.0.0.1');
    up.prependListener('request', (_, response) => response.setHeader('connection', 'close'));
    await using dns = await resolver({ 'good.test': '127.0.0.1' });
    await using gate = await routesTo(['good.test']);
    expect((await ask(gate, 'good.test')).status).toBe(200);
    dns.records.set('good.test', 'silent');
    const first = await ask(gate, 'good.test');
    expect(first.status).toBe(200);
    expect(first.took).toBeLessThan(LIMITS.hostLookupFallbackAfter + 500);
    for (let count = 0; count < 20; count += 1) {
      const { status, took } = await ask(gate, 'good.test');
      expect(status).toBe(200);
      expect(took).toBeLessThan(500);
    }
    dns.records.set('good.test', 'SERVFAIL');
    await delay(11 * SECOND);
    for (let count = 0; count < 3; count += 1) expect((await ask(gate, 'good.test')).status).toBe(200);
    dns.records.set('good.test', 'NXDOMAIN');
    await until(async () => (await ask(gate, 'good.test')).status === 503);
  }, 60_000);
});

describe('changed addresses', () => {
  test('the next connection uses a changed address', async () => {
    await using _one = await service('127.0.0.2');
    await using two = await service('127.0.0.3');
    await using dns = await resolver({ 'flip.test': '127.0.0.2' });
    await using gate = await routesTo(['flip.test']);
    expect((await ask(gate, 'flip.test')).text).toBe('127.0.0.2');
    dns.records.set('flip.test', '127.0.0.3');
    // The kept connection ends after 4 s without a request.
    await delay(6 * SECOND);
    expect((await ask(gate, 'flip.test')).text).toBe('127.0.0.3');
    // A server that is gone is not waited for.
    dns.records.set('flip.test', '127.0.0.2');
    two.closeAllConnections();
    await new Promise((resolve) => two.close(resolve));
    expect((await ask(gate, 'flip.test')).text).toBe('127.0.0.2');
  }, 30_000);

  test('a host under constant load moves to a changed address without interrupting a stream', async () => {
    await using _one = await service('127.0.0.2', 120 * SECOND);
    await using _two = await service('127.0.0.3', 120 * SECOND);
    await using dns = await resolver({ 'flip.test': '127.0.0.2' });
    await using gate = await routesTo(['flip.test']);
    let streamed = '';
    const stream = get(`${gate.url}/flip.test?stream`, (response) => {
      response.setEncoding('utf8').on('data', (text: string) => {
        streamed += text;
      });
    });
    // Its end is ours.
    stream.on('error', () => undefined);
    await until(() => streamed !== '');
    expect((await ask(gate, 'flip.test')).text).toBe('127.0.0.2');
    dns.records.set('flip.test', '127.0.0.3');
    const flipped = performance.now();
    await until(
      async () => {
        const { status, text } = await ask(gate, 'flip.test');
        expect(status).toBe(200);
        await delay(100);
        return text === '127.0.0.3';
      },
      LIMITS.connectionMaxAge + 5 * SECOND,
    );
    const before = streamed.length;
    await until(() => streamed.length > before);
    expect(streamed).not.toContain('127.0.0.3');
    stream.destroy();
    console.info(`a busy host moved after ${((performance.now() - flipped) / SECOND).toFixed(0)} s`);
  }, 90_000);
});
