import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { loadConfigText } from '../../src/server/config/load.ts';
import { planGateways } from '../../src/server/config/plan/plan-gateways.ts';
import { gateway, type TestGateway } from '../kit/gateway.ts';
import { INITIALIZE, MCP_HEADERS, openSession, post } from '../kit/mcp.ts';
import { serve } from '../kit/process.ts';
import { until } from '../kit/until.ts';
import { verifies } from '../kit/verifies.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const everything = join(root, 'test/kit/everything-server.ts');

function target(name: string) {
  return { name, stdio: { cmd: process.execPath, args: [everything] } };
}

function mcpRoute(...targets: object[]) {
  return { name: 'tools', matches: [{ path: { pathPrefix: '/mcp' } }], backends: [{ mcp: { targets } }] };
}

/** A configuration as YAML; JSON is YAML. */
function yaml(config: object): string {
  return JSON.stringify(config);
}

/** One port and one route, logging at this level. */
function minimal(level: string): string {
  return yaml({
    config: { logging: { level } },
    gateways: { main: { port: 0, routes: [mcpRoute(target('only'))] } },
  });
}

let shared: TestGateway;
let url: string;
beforeAll(async () => {
  shared = await gateway(
    yaml({ gateways: { main: { port: 0, protocol: 'HTTP', routes: [mcpRoute(target('everything'))] } } }),
  );
  url = `${shared.url}/mcp`;
});
afterAll(() => shared.close());

describe('agctl serve', () => {
  verifies(
    ['gateway.service.1', 'gateway.service.8.logs', 'gateway.log.line'],
    'agctl serve reads the file named with -f and writes each request as one info line on stdout',
    async () => {
      await using served = await serve(minimal('info'));
      const statuses = [];
      for (const path of ['/a', '/b']) statuses.push((await fetch(`${served.url}${path}`)).status);
      expect(statuses).toEqual([404, 404]);
      served.kill('SIGTERM');
      const { code, stdout, stderr } = await served.finished;
      expect(code).toBe(0);
      const lines = stdout.trimEnd().split('\n');
      expect(lines).toEqual([
        expect.stringMatching(/^\S+Z\tinfo\trequest .*http\.path=\/a .*http\.status=404/),
        expect.stringMatching(/^\S+Z\tinfo\trequest .*http\.path=\/b .*http\.status=404/),
      ]);
      expect(stderr).toContain('started bind');
    },
  );

  verifies(
    'gateway.config.logging.level',
    'agctl serve applies the configured log level from the start',
    async () => {
      await using served = await serve(minimal('error'));
      expect(served.stderr).not.toContain('started bind');
      await expect(gateway('config: { logging: { level: loud } }')).rejects.toThrow(
        /^config\.logging\.level: /,
      );
      for (const level of ['error', 'warn', 'info', 'debug', 'trace'])
        await (await gateway(`config: { logging: { level: ${level} } }`)).close();
    },
  );

  verifies(
    'gateway.service.1.schema-comment',
    'the example configurations begin with a comment that names the schema',
    () => {
      const examples = globSync('examples/*.yaml', { cwd: root });
      expect(examples).not.toEqual([]);
      for (const example of examples) {
        const [first = ''] = readFileSync(join(root, example), 'utf8').split('\n');
        const [, schema = ''] = /^# yaml-language-server: \$schema=(\S+)$/.exec(first) ?? [];
        expect(schema, example).toMatch(/\.json$/);
        expect(existsSync(resolve(root, dirname(example), schema)), schema).toBe(true);
      }
    },
  );
});

describe('listeners and routes', () => {
  verifies(
    [
      'gateway.service.2',
      'gateway.service.2.backends',
      'gateway.config.gateways',
      'gateway.config.gateways.routes',
    ],
    'each gateway has its own routes, and each route its own backend',
    async () => {
      const routes = (path: string) => [
        { ...mcpRoute(target('only')), matches: [{ path: { exact: path } }] },
      ];
      await using both = await gateway(
        yaml({ gateways: { a: { port: 0, routes: routes('/a') }, b: { port: 0, routes: routes('/b') } } }),
      );
      const status = async (port: number | undefined, path: string) =>
        (await post(`http://127.0.0.1:${port}${path}`, INITIALIZE)).status;
      const [a, b] = both.ports;
      expect([await status(a, '/a'), await status(a, '/b')]).toEqual([200, 404]);
      expect([await status(b, '/a'), await status(b, '/b')]).toEqual([404, 200]);
    },
  );

  verifies('gateway.config.gateways.port', 'a gateway listens on the configured port', async () => {
    const config = { gateways: { second: { port: shared.port, routes: [mcpRoute(target('only'))] } } };
    await expect(gateway(yaml(config))).rejects.toThrow(`port ${shared.port} is already in use`);
    await expect(gateway('gateways: { main: { port: 65536 } }')).rejects.toThrow(/^gateways\.main\.port: /);
  });

  verifies(
    'gateway.config.gateways.protocol',
    'a gateway accepts the protocol HTTP and rejects others',
    async () => {
      expect((await post(url, INITIALIZE)).status).toBe(200);
      await expect(gateway('gateways: { main: { port: 0, protocol: SMTP } }')).rejects.toThrow(
        /^gateways\.main\.protocol: /,
      );
    },
  );

  verifies(
    ['gateway.http.mcp-port', 'gateway.limits.mcp-port'],
    'a simplified mcp section is served on port 3000',
    () => {
      // Not over a socket: the port may be in use where the tests run.
      const { config } = loadConfigText(yaml({ mcp: { targets: [target('only')] } }), 'test.yaml', {});
      const { gateways } = planGateways(config as NonNullable<typeof config>);
      expect(gateways.map(({ port }) => port)).toEqual([3000]);
    },
  );
});

describe('MCP', () => {
  verifies(
    [
      'gateway.http.mcp-post',
      'gateway.http.mcp-post.initialize',
      'gateway.http.mcp-post.response',
      'gateway.http.mcp-post.session',
      'gateway.http.mcp-post.events',
      'gateway.versioning.1.client',
    ],
    'initialize with 2024-11-05 is answered with an event stream and a session',
    async () => {
      const params = {
        protocolVersion: '2024-11-05',
        capabilities: {},
        clientInfo: { name: 'client', version: '1' },
      };
      const reply = await post(url, { jsonrpc: '2.0', method: 'initialize', params, id: 7 });
      expect(reply.status).toBe(200);
      expect(reply.headers.get('content-type')).toBe('text/event-stream');
      expect(reply.headers.get('mcp-session-id')).toMatch(/^[!-~]+$/);
      expect(reply.text).toMatch(/^event: message\ndata: \{.*\}\n\n/m);
      expect(reply.messages).toEqual([
        {
          jsonrpc: '2.0',
          id: 7,
          result: expect.objectContaining({
            protocolVersion: '2024-11-05',
            capabilities: expect.objectContaining({ tools: expect.anything() }),
          }),
        },
      ]);
    },
  );

  verifies(
    [
      'gateway.service.3',
      'gateway.service.3.stdio',
      'gateway.route.backends',
      'gateway.route.targets',
      'gateway.route.stdio.cmd',
      'gateway.route.stdio.args',
    ],
    'tools/list has the tools of all stdio targets',
    async () => {
      await using two = await gateway(
        yaml({ gateways: { main: { port: 0, routes: [mcpRoute(target('one'), target('two'))] } } }),
        // A target that starts slowly would join the session after the list.
        { limits: { slowTargetStartWait: 30_000 } },
      );
      const session = await openSession(`${two.url}/mcp`);
      const { result } = await session.request('tools/list');
      const names: string[] = result.tools.map(({ name }: { name: string }) => name);
      const inner = names.filter((name) => name.startsWith('one_')).map((name) => name.slice('one_'.length));
      expect(inner).toContain('test_simple_text');
      expect(names.filter((name) => name.startsWith('two_'))).toEqual(inner.map((name) => `two_${name}`));
      const reply = await session.request('tools/call', { name: 'two_test_simple_text', arguments: {} });
      expect(reply.result.content[0].type).toBe('text');
      await session.end();
    },
  );

  verifies(
    ['gateway.http.mcp-post.headers', 'gateway.errors.not-acceptable'],
    'MCP POST requires JSON and a client that accepts an event stream',
    async () => {
      expect((await post(url, INITIALIZE, MCP_HEADERS)).status).toBe(200);
      const unacceptable = await post(url, INITIALIZE, { accept: 'application/json' });
      expect(unacceptable.status).toBe(406);
      expect(unacceptable.text).toBe('Not Acceptable: Client must accept text/event-stream');
      expect((await post(url, JSON.stringify(INITIALIZE), { 'content-type': 'text/plain' })).status).toBe(
        415,
      );
    },
  );

  verifies(
    'gateway.http.mcp-get.not-acceptable',
    'MCP GET without accept text/event-stream is rejected',
    async () => {
      expect((await fetch(url)).status).toBe(406);
      expect((await fetch(url, { headers: { accept: 'application/json' } })).status).toBe(406);
    },
  );
});

describe('access log', () => {
  verifies(
    [
      'gateway.route.name',
      'gateway.log.gateway',
      'gateway.log.source',
      'gateway.log.http',
      'gateway.log.protocol',
      'gateway.log.duration',
      'gateway.log.endpoint',
    ],
    'the access log describes a request and its backend',
    async () => {
      const routes = [{ name: 'all', backends: [{ host: `127.0.0.1:${shared.port}` }] }];
      await using front = await gateway(yaml({ gateways: { front: { port: 0, routes } } }));
      const before = shared.accessLog.length;
      await post(`${front.url}/mcp?x=1`, INITIALIZE);
      const line = await front.accessLine(1);
      expect(line).toMatchObject({
        gateway: 'default/default',
        listener: 'front',
        route: 'default/all',
        endpoint: `127.0.0.1:${shared.port}`,
        'src.addr': expect.stringMatching(/^127\.0\.0\.1:\d+$/),
        'http.method': 'POST',
        'http.host': `127.0.0.1:${front.port}`,
        'http.path': '/mcp?x=1',
        'http.version': 'HTTP/1.1',
        'http.status': '200',
        protocol: 'http',
        duration: expect.stringMatching(/^\d+ms$/),
      });
      expect(await shared.accessLine(before + 1)).toMatchObject({ route: 'default/tools', protocol: 'mcp' });
    },
  );

  verifies(
    'gateway.log.error',
    'the access log has the reason of a failed request and no reason for a successful one',
    async () => {
      const before = shared.accessLog.length;
      await post(url, INITIALIZE, { accept: 'application/json' });
      expect(await shared.accessLine(before + 1)).toMatchObject({
        'http.status': '406',
        error: 'Not Acceptable: Client must accept text/event-stream',
      });
      await post(url, INITIALIZE);
      expect(await shared.accessLine(before + 2)).not.toHaveProperty('error');
    },
  );

  verifies('gateway.config.logging.format', 'the access log format is text by default, or JSON', async () => {
    const before = shared.accessLog.length;
    await fetch(`${shared.url}/nowhere`);
    await shared.accessLine(before + 1);
    expect(shared.accessLog[before]).toMatch(/^\S+Z\tinfo\trequest gateway=/);
    const routes = [mcpRoute(target('only'))];
    await using json = await gateway(
      yaml({ config: { logging: { format: 'json' } }, gateways: { main: { port: 0, routes } } }),
    );
    await fetch(`${json.url}/nowhere`);
    await until(() => json.accessLog.length === 1);
    expect(JSON.parse(json.accessLog[0] ?? '')).toMatchObject({ level: 'info', 'http.path': '/nowhere' });
  });
});
