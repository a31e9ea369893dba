import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { Agent, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { chaos } from '../../kit/config.ts';
import { openEvents } from '../../kit/event-stream.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway, type TestGateway, type TestGatewayOptions } from '../../kit/gateway.ts';
import { openSession } from '../../kit/mcp.ts';
import { mcpUpstream } from '../../kit/mcp-upstream.ts';
import { parseMetrics, sampleValue } from '../../kit/open-metrics.ts';
import { busyPort, freePort, occupy } from '../../kit/ports.ts';
import { type RouteParts, routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { recorded } from '../../kit/trace.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

interface Live extends AsyncDisposable {
  readonly gate: TestGateway;
  /** Writes a new configuration and reloads it. Resolves to whether it took effect. */
  become(config: string): Promise<boolean>;
}

async function live(config: string, options: TestGatewayOptions = {}): Promise<Live> {
  const folder = await temporaryFolder();
  const gate = await gateway(config, { folder: folder.path, live: 'asked', ...options });
  return {
    gate,
    become(next) {
      writeFileSync(join(folder.path, 'test.yaml'), next);
      return gate.live.reload();
    },
    async [Symbol.asyncDispose]() {
      await gate.close();
      await folder.remove();
    },
  };
}

const answer = (body: string, policies: object = {}): RouteParts => ({
  name: 'a',
  policies: { directResponse: { body }, ...policies },
});
const yaml = (...routes: RouteParts[]): string => routesConfig(routes);
const text = async (url: string): Promise<string> => (await send(url)).text;
const isSynchronized = async ({ running }: TestGateway): Promise<number | undefined> =>
  sampleValue(parseMetrics(await running.metrics.render()), 'gw_config_synchronized');

/** The last line, but for what the audit says of the reload. */
const said = ({ log }: TestGateway): string | undefined =>
  log.findLast((line) => !line.includes('\taudit\t'));

describe('a reload', () => {
  test.each(['gateways: {}', 'config: { adminAddr: "off" }'])(
    'a reload keeps the listening ports when the new configuration %s names none',
    async (next) => {
      await using it = await live(yaml(answer('one')));
      expect(await it.become(next)).toBe(false);
      expect(await text(it.gate.url)).toBe('one');
      expect(it.gate.log.join('')).toMatch(/Failed to reload config: .*no port is configured/);
    },
  );

  test('a reload applies the new configuration to open connections and logs what changed', async () => {
    await using it = await live(yaml(answer('one'), { ...answer('gone'), name: 'b', hostnames: ['b.test'] }));
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    expect((await send(it.gate.url, { agent })).text).toBe('one');
    expect(await it.become(yaml(answer('two'), { ...answer('new'), name: 'c', hostnames: ['c.test'] }))).toBe(
      true,
    );
    const { text: body, headers } = await send(it.gate.url, { agent });
    expect([body, headers.connection]).toEqual(['two', 'keep-alive']);
    expect(it.gate.log.find((line) => line.includes('configuration reloaded'))).toMatch(
      /\tinfo\tagctl::reload\tconfiguration reloaded\tfile="test.yaml" routes.added="gateway\/default\/default\/c" routes.removed="gateway\/default\/default\/b" routes.changed="gateway\/default\/default\/a" ms=\d+\n/,
    );
    agent.destroy();
  });

  test('a request in flight during a reload keeps its configuration and its access log', async () => {
    const { promise: asked, resolve } = Promise.withResolvers<ServerResponse>();
    await using backend = await httpUpstream((_, response) => resolve(response));
    const config = (field: string, host: string) =>
      routesConfig([{ name: 'a', backends: [{ host }] }], {
        frontendPolicies: { accessLog: { add: { version: `"${field}"` } } },
      });
    await using it = await live(config('old', backend.address));
    const slow = send(it.gate.url);
    const response = await asked;
    await using other = await httpUpstream((_, answered) => answered.end('other'));
    expect(await it.become(config('new', other.address))).toBe(true);
    expect(await text(it.gate.url)).toBe('other');
    response.end('late');
    expect((await slow).text).toBe('late');
    const lines = [await it.gate.accessLine(1), await it.gate.accessLine(2)];
    expect(lines.map(({ version }) => version)).toEqual(['new', 'old']);
  });

  test('a reload keeps the rate limit buckets of an unchanged policy and resets those of a changed one', async () => {
    const limit = (maxTokens: number) => ({ localRateLimit: [{ maxTokens, fillInterval: '1h' }] });
    await using it = await live(yaml(answer('one', limit(2))));
    const statuses = async (count: number) => {
      const all: number[] = [];
      for (let i = 0; i < count; i += 1) all.push((await send(it.gate.url)).status);
      return all;
    };
    expect(await statuses(1)).toEqual([200]);
    await it.become(yaml({ ...answer('x'), name: 'first', hostnames: ['x.test'] }, answer('two', limit(2))));
    expect(await statuses(2)).toEqual([200, 429]);
    await it.become(yaml(answer('two', limit(3))));
    expect(await statuses(4)).toEqual([200, 200, 200, 429]);
  });

  test('a reload updates the configuration lines in traces, also of unchanged policies', async () => {
    const config = yaml(answer('one', { authorization: { rules: ['request.method == "GET"'] } }));
    await using it = await live(config);
    const lines = async (): Promise<Set<unknown>> => {
      const events = await recorded(it.gate, () => send(it.gate.url));
      return new Set([...JSON.stringify(events).matchAll(/"configLine":(\d+)/g)].map(([, line]) => line));
    };
    expect(await lines()).toEqual(new Set(['1']));
    expect(await it.become(`# moved\n# twice\n${config}`)).toBe(true);
    expect(await lines()).toEqual(new Set(['3']));
  });

  test('a reload updates the configuration dump and the overview', async () => {
    await using it = await live(yaml(answer('one')), { admin: true });
    await it.become(`# moved\n${yaml({ ...answer('two'), name: 'b' })}`);
    const overview = JSON.parse(await text(`${it.gate.admin}/api/overview`));
    expect(overview.gateways[0].routes).toMatchObject([{ name: 'default/b', line: 2 }]);
    expect(overview.reload).toMatchObject({ watching: false, synchronized: true, count: 1 });
    expect(await text(`${it.gate.admin}/config_dump`)).toContain('default/b');
    expect(JSON.parse(await text(`${it.gate.admin}/api/config`)).text).toContain('# moved');
  });

  test('a reload logs which changed settings need a restart', async () => {
    await using it = await live(yaml(answer('one')));
    const more = { config: { logging: { level: 'warn' }, mcp: { maxSessions: 7 } } };
    expect(await it.become(routesConfig([answer('two')], more))).toBe(true);
    expect(await text(it.gate.url)).toBe('two');
    expect(said(it.gate)).toContain('settings="config.logging.level, config.mcp.maxSessions"');
    expect(it.gate.directives.current).toContain('debug');
  });
});

describe('a reload of an invalid configuration', () => {
  test('a reload of an invalid configuration changes nothing and reports the position until it is fixed', async () => {
    await using it = await live(yaml(answer('one')), { admin: true });
    expect(await isSynchronized(it.gate)).toBe(1);
    expect(await it.become('gateways:\n  default: { port: nine }\n')).toBe(false);
    expect(said(it.gate)).toMatch(
      /\terror\tagctl::reload\tFailed to reload config: test.yaml:2:20: error AGW/,
    );
    expect(await isSynchronized(it.gate)).toBe(0);
    expect(await text(it.gate.url)).toBe('one');
    const { reload } = JSON.parse(await text(`${it.gate.admin}/api/overview`));
    expect(reload).toMatchObject({ synchronized: false, failure: { errorCount: 1 } });
    for (const wrong of ['', 'gateways: [', yaml(answer('x', { authorization: { rules: ['jwt.'] } }))]) {
      expect(await it.become(wrong)).toBe(false);
      expect(said(it.gate)).toContain('Failed to reload config: test.yaml');
    }
    expect(await it.become(yaml(answer('two')))).toBe(true);
    expect([await text(it.gate.url), await isSynchronized(it.gate)]).toEqual(['two', 1]);
  });

  test('a reload of an invalid configuration logs no secret from it', async () => {
    await using it = await live(yaml(answer('one')), { admin: true });
    const key = { keys: [{ key: 'sk-very-secret-1234' }], mode: 'sk-very-secret-1234' };
    expect(await it.become(yaml(answer('x', { apiKey: key })))).toBe(false);
    const told = [
      ...it.gate.log,
      await text(`${it.gate.admin}/api/overview`),
      await text(`${it.gate.admin}/ui/`),
    ];
    expect(told.join('')).not.toContain('sk-very-secret');
    expect(told.join('')).toContain('The changed configuration is not loaded');
  });

  test('a reload of an invalid configuration does not reset rate limits of the active one', async () => {
    const policies = { localRateLimit: [{ maxTokens: 1, fillInterval: '1h' }] };
    await using it = await live(yaml(answer('one', policies)));
    await send(it.gate.url);
    await it.become(yaml(answer('two', { ...policies, authorization: { rules: ['1 +'] } })));
    await it.become(yaml(answer('two', policies)));
    expect((await send(it.gate.url)).status).toBe(429);
  });
});

describe('ports at a reload', () => {
  const on = (...ports: number[]): string =>
    JSON.stringify({
      gateways: Object.fromEntries(
        ports.map((port, index) => [`g${index}`, { port, routes: [answer(`on ${index}`)] }]),
      ),
    });
  const isOpen = (port: number): Promise<boolean> =>
    send(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    );

  test('a reload opens and closes ports; if one cannot be opened, nothing changes', async () => {
    const [busy, fresh, second] = [await freePort(), await freePort(), await freePort()];
    const { server } = await occupy(busy);
    await using it = await live(on(0));
    expect(await it.become(on(0, fresh, busy))).toBe(false);
    expect(it.gate.log.at(-1)).toMatch(
      new RegExp(`test.yaml:1:\\d+: error AGW0401 port ${busy} is already in use`),
    );
    expect([await isOpen(fresh), await text(it.gate.url)]).toEqual([false, 'on 0']);
    server.close();
    await once(server, 'close');
    expect(await it.become(on(0, fresh, busy))).toBe(true);
    expect([await isOpen(fresh), await isOpen(busy)]).toEqual([true, true]);
    // The same port for another gateway: the listener stays, its name does not.
    expect(await it.become(on(0, busy, second))).toBe(true);
    expect(await text(`http://127.0.0.1:${busy}/`)).toBe('on 1');
    expect([await isOpen(fresh), await isOpen(second)]).toEqual([false, true]);
    await until(() => it.gate.accessLog.some((line) => line.includes(' listener=g1 ')));
  });

  test('ports keep their address at a reload, which only a restart changes', async () => {
    const port = await freePort();
    const at = (address: object): string =>
      JSON.stringify({ gateways: { g: { port, ...address, routes: [answer('one')] } } });
    await using it = await live(at({}));
    expect(await it.become(at({ address: '127.0.0.1' }))).toBe(false);
    expect(it.gate.log.at(-1)).toContain('changing the address or protocol of a port requires a restart');
    expect(await text(it.gate.url)).toBe('one');
  });

  test('a reload does not treat a port of another process as its own', async () => {
    const port = await freePort();
    await using _other = await busyPort('127.0.0.2', port);
    const gate = (address: string): object => ({ port, address, routes: [answer('one')] });
    await using it = await live(JSON.stringify({ gateways: { g: gate('127.0.0.1') } }));
    const both = { g: gate('127.0.0.1'), h: gate('127.0.0.2') };
    expect(await it.become(JSON.stringify({ gateways: both }))).toBe(false);
    expect(it.gate.log.at(-1)).toContain(`port ${port} is already in use`);
  });

  test('a port that a reload removes completes its in-flight requests', async () => {
    const { promise: asked, resolve } = Promise.withResolvers<ServerResponse>();
    await using backend = await httpUpstream((_, response) => resolve(response));
    const port = await freePort();
    const config = (gateways: object): string => JSON.stringify({ gateways });
    const first = { port: 0, routes: [answer('one')] };
    const routes = [{ name: 'slow', backends: [{ host: backend.address }] }];
    await using it = await live(config({ first, second: { port, routes } }));
    const slow = send(`http://127.0.0.1:${port}/`);
    const response = await asked;
    expect(await it.become(config({ first }))).toBe(true);
    expect(await isOpen(port)).toBe(false);
    response.end('late');
    expect((await slow).text).toBe('late');
  });

  test('removing a port in a reload aborts the requests of that port at the deadline, and no others', async () => {
    const port = await freePort();
    const deadline = { connectionTerminationDeadline: '200ms' };
    const config = (gateways: object): string => JSON.stringify({ config: deadline, gateways });
    const routes = (name: string): object[] => [{ name, backends: [{ mcp: { targets: [chaos(name)] } }] }];
    const first = { port: 0, routes: routes('a') };
    await using it = await live(config({ first, second: { port, routes: routes('b') } }));
    const staying = await openSession(`${it.gate.url}/mcp`);
    const leaving = await openSession(`http://127.0.0.1:${port}/mcp`);
    const wait = { name: 'later', arguments: { ms: 1_000, message: 'done' } };
    const calls = [staying, leaving].map((session) => session.request('tools/call', wait));
    await Promise.all([staying.request('ping'), leaving.request('ping')]);
    expect(await it.become(config({ first }))).toBe(true);
    const [stays, leaves] = await Promise.all(calls);
    expect(leaves?.error).toMatchObject({
      code: -32603,
      message: expect.stringContaining('closing this port'),
    });
    expect(stays?.result.content[0].text).toBe('done');
    expect(it.gate.log.filter((line) => line.includes('1 request was aborted at the deadline'))).toHaveLength(
      1,
    );
  });
});

describe('MCP sessions at a reload', () => {
  const mcp = (targets: object[], rules = ['true']): string =>
    yaml({ name: 'm', policies: { authorization: { rules } }, backends: [{ mcp: { targets } }] });

  test('MCP sessions of an unchanged backend keep their child process and stream when a policy changes', async () => {
    await using it = await live(mcp([chaos('a')]));
    const session = await openSession(it.gate.url);
    await using events = await openEvents(it.gate.url, { session: session.id });
    const pid = async () => (await session.request('tools/call', { name: 'pid' })).result;
    const before = await pid();
    expect(before).toBeDefined();
    expect(await it.become(mcp([chaos('a')], ['request.method != "PUT"']))).toBe(true);
    expect(await pid()).toEqual(before);
    expect((await send(it.gate.url, { method: 'PUT' })).status).toBe(403);
    expect(events.ended).toBe(false);
  });

  test('MCP sessions of a changed backend keep their targets until they end; new sessions get the new targets', async () => {
    await using one = await mcpUpstream({});
    await using two = await mcpUpstream({});
    const at = (url: string) => mcp([{ name: 't', mcp: { host: url } }]);
    await using it = await live(at(one.url));
    const old = await openSession(it.gate.url);
    await using events = await openEvents(it.gate.url, { session: old.id });
    expect(await it.become(at(two.url))).toBe(true);
    expect((await old.request('tools/list')).status).toBe(200);
    expect([one.of('tools/list').length, two.received.length]).toEqual([1, 0]);
    expect(events.ended).toBe(false);
    const fresh = await openSession(it.gate.url);
    await fresh.request('tools/list');
    expect(two.of('tools/list')).toHaveLength(1);
    // After another change both still exist, and an ended session stays ended.
    expect(await it.become(mcp([{ name: 't', mcp: { host: one.url } }, chaos('b')]))).toBe(true);
    expect((await old.request('tools/list')).status).toBe(200);
    expect((await fresh.request('tools/list')).status).toBe(200);
    expect((await old.end()).status).toBe(204);
    expect((await old.request('tools/list')).status).toBe(404);
    expect((await fresh.request('tools/list')).status).toBe(200);
  });

  test('MCP sessions of a removed route end together with their child processes', async () => {
    await using it = await live(mcp([chaos('a')]), { admin: true });
    const session = await openSession(it.gate.url);
    const call = await session.request('tools/call', { name: 'pid' });
    const pid = Number(/\d+/.exec(JSON.stringify(call.result))?.[0]);
    await it.become(yaml(answer('one')));
    await until(() => {
      try {
        process.kill(pid, 0);
        return false;
      } catch {
        return true;
      }
    });
  });
});
