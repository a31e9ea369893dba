import { Agent } from 'node:http';
import { describe, expect, test } from 'vitest';
import { parseAccessLine } from '../../kit/gateway.ts';
import { serve } from '../../kit/process.ts';
import { answeringGateway, proxyGateway, routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';
import { verifies } from '../../kit/verifies.ts';

describe('the access log as the log target `request`', () => {
  test('log directives silence and restore the access log, debug numbers its lines, and listeners are always called', async () => {
    await using gate = await answeringGateway({});
    const told: string[] = [];
    const stop = gate.running.onRequestFinished((fields, ctx) => {
      told.push(`${ctx.path} ${fields.find(([name]) => name === 'http.status')?.[1]}`);
    });
    const get = async (path: string): Promise<void> => {
      const before = told.length;
      await send(`${gate.url}${path}`);
      await until(() => told.length > before);
    };
    gate.directives.add('request=off');
    await get('/a');
    gate.directives.add('request=debug');
    await get('/b');
    await get('/c');
    gate.directives.reset();
    await get('/d');
    stop();
    await send(`${gate.url}/e`);
    await until(() => gate.accessLog.length === 4);
    const lines = gate.accessLog.map(parseAccessLine);
    expect(lines.map((line) => line['http.path'])).toEqual(['/b', '/c', '/d', '/e']);
    expect(gate.accessLog[0]).toMatch(/\trequest connection\.id=\d+ request\.id=\d+ gateway=/);
    expect(Number(lines[1]?.['request.id'])).toBe(Number(lines[0]?.['request.id']) + 1);
    expect(lines[2]).not.toHaveProperty('connection.id');
    expect(told).toEqual(['/a 200', '/b 200', '/c 200', '/d 200']);
  });

  test('the access log has the connection number of a request whose body was streamed', async () => {
    await using upstream = await httpUpstream();
    await using gate = await proxyGateway(upstream.address);
    gate.directives.add('request=debug');
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let count = 1; count <= 2; count += 1) {
      await send(gate.url, { method: 'POST', body: Buffer.alloc(300_000), agent });
      await gate.accessLine(count);
    }
    agent.destroy();
    const [first, second] = gate.accessLog.map(parseAccessLine);
    expect(Number(first?.['connection.id'])).toBeGreaterThan(0);
    expect(second?.['connection.id']).toBe(first?.['connection.id']);
  });

  verifies(
    'gateway.admin.logging.modules',
    'log levels per module come from the configuration, and RUST_LOG overrides them',
    async () => {
      const config = (level: string) =>
        routesConfig([{ policies: { directResponse: { body: 'x' } } }], { config: { logging: { level } } });
      const stderrOf = async (level: string, RUST_LOG?: string): Promise<string> => {
        await using served = await serve(config(level), { env: { RUST_LOG } });
        await (await fetch(served.url)).text();
        served.kill('SIGTERM');
        const { stdout, stderr } = await served.finished;
        return `${stdout.includes('http.status=200')} ${stderr.includes('started bind')}`;
      };
      expect(await stderrOf('warn,proxy::gateway=info')).toBe('false true');
      expect(await stderrOf('info,agentgateway::proxy=off')).toBe('true false');
      expect(await stderrOf('error', 'request=info')).toBe('true false');
      expect(await stderrOf('info', 'what,ever')).toBe('true true');
    },
  );
});
