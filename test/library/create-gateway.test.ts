import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  ConfigError,
  createGateway,
  type GatewayConfig,
  type LogMessage,
  type RequestFacts,
} from '../../src/library/index.ts';
import { chaos } from '../kit/config.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { freePort } from '../kit/ports.ts';
import { until } from '../kit/until.ts';
import { httpUpstream } from '../kit/upstream.ts';

/** A configuration whose only route answers with a status. */
const answering = (status: number, port: number | string = 0): GatewayConfig => ({
  config: { connectionTerminationDeadline: '100ms' },
  gateways: {
    default: {
      port,
      address: '127.0.0.1',
      routes: [{ policies: { directResponse: { status, body: 'x' } } }],
    },
  },
});

const thrown = async (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('createGateway', () => {
  test('opens the ports of a configuration object, at the addresses in its urls', async () => {
    await using gateway = await createGateway(answering(201));
    expect(gateway.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(gateway.urls).toEqual({ default: gateway.url });
    expect((await fetch(gateway.url)).status).toBe(201);
  });

  test('opens no port without `listen`, not even that of another process', async () => {
    await using first = await createGateway(answering(201));
    const port = Number(new URL(first.url).port);
    await using second = await createGateway(answering(202, port), { listen: false });
    expect(second.url).toBe('http://localhost');
    expect([(await fetch(first.url)).status, (await second.fetch('/')).status]).toEqual([201, 202]);
  });

  test('reads a file by its path or URL, with what it names beside it and the variables given', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'gateway.yaml');
    writeFileSync(join(folder.path, 'key.txt'), 'secret-of-a-file');
    await using upstream = await httpUpstream();
    writeFileSync(
      path,
      `gateways: { default: { port: $PORT, address: 127.0.0.1, routes: [{ backends: [{ host: "${upstream.address}",
        policies: { backendAuth: { key: { file: key.txt } } } }] }] } }`,
    );
    for (const file of [path, new URL(`file://${path}`)]) {
      await using gateway = await createGateway(file, { env: { PORT: '0' } });
      expect((await fetch(gateway.url)).status).toBe(200);
    }
    expect(upstream.received.map(({ headers }) => headers['authorization'])).toEqual([
      'Bearer secret-of-a-file',
      'Bearer secret-of-a-file',
    ]);
  });

  test('throws a ConfigError with every problem, its path and how to fix it', async () => {
    // @ts-expect-error -- no key of the type
    const error = await thrown(createGateway({ gateways: { default: { port: 'x', routs: [] } } }));
    expect(error).toBeInstanceOf(ConfigError);
    const { message, problems } = error as ConfigError;
    expect(problems.map(({ path, severity }) => [path.join('.'), severity])).toEqual([
      ['gateways.default.port', 'error'],
      ['gateways.default.routs', 'error'],
    ]);
    expect(message).toMatch(/^the configuration is not valid:\n {2}gateways\.default\.port: /);
    expect(message).toContain('a field with a similar name exists: `routes`');
    expect(problems[0]).not.toHaveProperty('line');
  });

  test('a ConfigError of a file has its lines, and no secret', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'gateway.yaml');
    writeFileSync(
      path,
      'llm:\n  models:\n    - name: a\n      provider: opnAI\n      params: { apiKey: $API_KEY }\n',
    );
    const error = await thrown(createGateway(path, { env: { API_KEY: 'canary-4711-secret' } }));
    expect(error).toMatchObject({
      problems: [{ severity: 'warning' }, { path: ['llm', 'models', 0, 'provider'], line: 4, column: 17 }],
    });
    expect(JSON.stringify(error) + String(error)).not.toContain('canary-4711');
    expect(String(error)).toContain(
      'unknown provider `opnAI`; a provider with a similar name exists: `openAI`',
    );
  });

  test('a variable that is not set can be given in the option `env`, says the error', async () => {
    const { gateways } = answering(200, '$PORT_OF_NOBODY');
    const error = await thrown(createGateway({ gateways }, { env: {} }));
    expect(String(error)).toMatch(
      /`PORT_OF_NOBODY` is not defined .*; define it in the environment or the option `env`, or/,
    );
  });

  test('a port that is in use is a ConfigError, and nothing stays open', async () => {
    await using first = await createGateway(answering(201));
    const port = Number(new URL(first.url).port);
    const free = await freePort();
    const gateways = { ...answering(200, free).gateways, other: { port, address: '127.0.0.1' } };
    const error = await thrown(createGateway({ ...answering(200, free), gateways }));
    expect(error).toMatchObject({ message: expect.stringContaining(`port ${port} is already in use`) });
    await using again = await createGateway(answering(203, free));
    expect((await fetch(again.url)).status).toBe(203);
  });

  test('tells what is valid and probably not meant', async () => {
    const config = answering(200);
    await using gateway = await createGateway({
      ...config,
      backends: [{ name: 'unused', host: '127.0.0.1:1' }],
    });
    expect(gateway.warnings).toMatchObject([
      {
        severity: 'warning',
        path: ['backends', 0, 'name'],
        message: 'nothing refers to the backend `unused`',
      },
    ]);
  });

  test('warns of ports that everyone can use, if it opens them', async () => {
    const config: GatewayConfig = {
      gateways: { default: { port: 0 } },
      llm: { models: [{ name: '*', provider: 'openAI', params: { apiKey: 'key-of-the-provider' } }] },
    };
    const warnedOf = async (listen: boolean | 'free'): Promise<string[]> => {
      await using gateway = await createGateway(config, { listen });
      return gateway.warnings.map(({ code }) => code).filter((code) => code === 'AGW0312');
    };
    expect([await warnedOf(true), await warnedOf('free'), await warnedOf(false)]).toEqual([
      ['AGW0312'],
      [],
      [],
    ]);
  });
});

describe('mistakes in JavaScript', () => {
  test.each<[string, () => Promise<unknown>, string]>([
    [
      'no configuration',
      () => createGateway(undefined as never),
      'expected a configuration: an object, or the path',
    ],
    ['null', () => createGateway(null as never), 'expected a configuration: an object, or the path'],
    ['a cycle', () => createGateway(cyclic() as never), 'the configuration cannot be written as JSON'],
    [
      'an unknown option',
      () => createGateway(answering(200), { lisen: false } as never),
      'unknown option `lisen`',
    ],
    [
      'another value of listen',
      () => createGateway(answering(200), { listen: 'none' } as never),
      "true, false or 'free'",
    ],
    ['a file that is missing', () => createGateway('missing.yaml'), 'ENOENT'],
  ])('createGateway says what %s is', async (_, create, message) => {
    await expect(create()).rejects.toThrow(message);
  });

  test('on says which events there are, and methods work without their object', async () => {
    await using gateway = await createGateway(answering(201), { listen: false });
    const { on, handle, reload, close } = gateway;
    expect(() => on('requests' as never, () => undefined)).toThrow(
      'unknown event `requests`: expected request or log',
    );
    expect(() => on('request', undefined as never)).toThrow('the listener of `request` is not a function');
    await reload(answering(202));
    expect((await handle(new Request('http://localhost/'))).status).toBe(202);
    await close();
  });

  function cyclic(): object {
    const config: { self?: object } = {};
    config.self = config;
    return config;
  }
});

describe('gateway.reload', () => {
  test('replaces a configuration object while requests go on', async () => {
    await using gateway = await createGateway(answering(201));
    const { url } = gateway;
    await gateway.reload(answering(202));
    expect([(await fetch(url)).status, (await gateway.fetch('/')).status]).toEqual([202, 202]);
  });

  test('keeps what it has if the new configuration is not valid, and says why', async () => {
    await using gateway = await createGateway(answering(201));
    // @ts-expect-error -- no key of the type
    const error = await thrown(gateway.reload({ gatways: {} }));
    expect(error).toMatchObject({ name: 'ConfigError', problems: [{ path: ['gatways'] }] });
    await gateway.reload();
    expect((await gateway.fetch('/')).status).toBe(201);
    await gateway.reload(answering(204));
    expect((await gateway.fetch('/')).status).toBe(204);
  });

  test('reads a file again, or when it changes with `watch`', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'gateway.yaml');
    const write = (status: number): void => writeFileSync(path, JSON.stringify(answering(status)));
    write(201);
    await using gateway = await createGateway(path);
    await using watching = await createGateway(path, { watch: true });
    write(202);
    await until(async () => (await watching.fetch('/')).status === 202);
    expect((await gateway.fetch('/')).status).toBe(201);
    await gateway.reload();
    expect((await gateway.fetch('/')).status).toBe(202);
    await expect(gateway.reload(answering(203))).rejects.toThrow('change the file');
    rmSync(path);
    await expect(gateway.reload()).rejects.toThrow('cannot be read');
    expect((await gateway.fetch('/')).status).toBe(202);
  });
});

describe('gateway.close', () => {
  test('waits for open requests, and refuses further ones', async () => {
    let answer = (): void => undefined;
    await using upstream = await httpUpstream((_, response) => {
      answer = () => void response.end('late');
    });
    const routes = [{ backends: [{ host: upstream.address }] }];
    const gateway = await createGateway({ gateways: { default: { port: 0, routes } } }, { listen: false });
    const open = gateway.fetch('/');
    await until(() => upstream.received.length === 1);
    const closed = gateway.close();
    await expect(gateway.fetch('/')).rejects.toThrow('the gateway is closing');
    answer();
    expect(await (await open).text()).toBe('late');
    await closed;
    await gateway.close();
  });

  test('waits for requests that were handed over in the same turn', async () => {
    const gateway = await createGateway(answering(201), { listen: false });
    const open = Array.from({ length: 50 }, () => gateway.fetch('/'));
    await gateway.close();
    expect(new Set((await Promise.all(open)).map(({ status }) => status))).toEqual(new Set([201]));
  });

  test('answers 503 to a request that is open at the deadline', async () => {
    await using upstream = await httpUpstream(() => undefined);
    const config = { connectionTerminationDeadline: '100ms' };
    const routes = [{ backends: [{ host: upstream.address }] }];
    const gateway = await createGateway(
      { config, gateways: { default: { port: 0, routes } } },
      { listen: false },
    );
    const open = gateway.fetch('/');
    await until(() => upstream.received.length === 1);
    await gateway.close();
    expect((await open).status).toBe(503);
  });

  test('ends child processes, also when 100 gateways were started and closed', async () => {
    const closed: Promise<void>[] = [];
    for (let count = 0; count < 100; count += 1) {
      const gateway = await createGateway(answering(201), { listen: count % 2 === 0 });
      expect((await gateway.fetch('/')).status).toBe(201);
      closed.push(gateway.close());
    }
    await Promise.all(closed);
  });
});

describe('events of a gateway', () => {
  test('`request` tells what is known of each request, and nothing once its listener is removed', async () => {
    await using gateway = await createGateway(answering(201));
    const told: RequestFacts[] = [];
    const stop = gateway.on('request', (facts) => told.push(facts));
    await fetch(`${gateway.url}/a?key=canary-secret`, { headers: { 'user-agent': 'test/1' } });
    await gateway.handle(new Request('http://localhost/b'), { address: '203.0.113.7' });
    await until(() => told.length === 2);
    expect(told).toMatchObject([
      {
        path: '/a',
        status: 201,
        protocol: 'http',
        operation: 'GET',
        userAgent: 'test/1',
        client: '127.0.0.1',
      },
      {
        path: '/b',
        status: 201,
        client: '203.0.113.7',
        listener: 'default',
        route: 'default/route0',
      },
    ]);
    expect(told[0]?.time).toBeInstanceOf(Date);
    expect(told[0]?.durationMs).toBeGreaterThanOrEqual(0);
    expect(JSON.stringify(told)).not.toContain('canary');
    stop();
    await gateway.fetch('/c');
    await new Promise((resolve) => setImmediate(resolve));
    expect(told).toHaveLength(2);
  });

  test('`log` has the messages of the configured level, with their fields', async () => {
    const targets = [chaos('dead', '--exit=7'), chaos('well')];
    await using gateway = await createGateway(
      { gateways: { default: { port: 0, routes: [{ backends: [{ mcp: { targets } }] }] } } },
      { listen: false },
    );
    const told: LogMessage[] = [];
    gateway.on('log', (message) => told.push(message));
    const params = {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'test', version: '1' },
    };
    const answer = await gateway.fetch('/mcp', {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
    });
    expect(answer.status).toBe(200);
    await answer.text();
    const ofTarget = () => told.find(({ level, fields }) => level === 'warn' && fields['target'] === 'dead');
    await until(() => ofTarget() !== undefined);
    expect(ofTarget()?.time).toBeInstanceOf(Date);
    expect(new Set(told.map(({ level }) => level)).has('debug')).toBe(false);
  });

  test('an asynchronous listener that fails is logged, as any other, and the program goes on', async () => {
    await using gateway = await createGateway(answering(201), { listen: false });
    const log: LogMessage[] = [];
    gateway.on('log', (message) => log.push(message));
    gateway.on('request', async ({ path }) => {
      throw new Error(`database down at ${path}`);
    });
    await gateway.fetch('/a');
    await until(() => log.length > 0);
    expect(log).toMatchObject([
      {
        level: 'error',
        message: 'a listener of the program has failed',
        fields: { problem: 'database down at /a' },
      },
    ]);
  });

  test('listeners of the option `on` are told from the start, as of settings without effect', async () => {
    const log: LogMessage[] = [];
    const config = { ...answering(201), config: { workers: 2 } };
    await using _ = await createGateway(config, {
      listen: false,
      on: { log: (message) => log.push(message) },
    });
    expect(log.map(({ message }) => message)).toContain(
      'config.workers has no effect: requests are handled in the process of the program',
    );
  });

  test('a listener that throws neither fails the request nor keeps others from being told', async () => {
    await using gateway = await createGateway(answering(201));
    const log: LogMessage[] = [];
    let told = 0;
    gateway.on('log', (message) => log.push(message));
    gateway.on('request', () => {
      throw new Error('of the listener');
    });
    gateway.on('request', () => {
      told += 1;
    });
    expect((await gateway.fetch('/')).status).toBe(201);
    await until(() => told === 1);
    expect(log.some(({ fields }) => String(fields['problem']).includes('of the listener'))).toBe(true);
  });
});
