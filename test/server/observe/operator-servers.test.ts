import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { createLog } from '../../../src/core/log.ts';
import {
  OperatorServerError,
  openOperatorServer,
  Readiness,
  readinessHandler,
} from '../../../src/server/observe/operator-servers.ts';
import { cli } from '../../kit/cli.ts';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { openSession } from '../../kit/mcp.ts';
import { parseMetrics } from '../../kit/open-metrics.ts';
import { busyPort } from '../../kit/ports.ts';
import { serve } from '../../kit/process.ts';
import { routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';

const config = (more: object = {}): string =>
  routesConfig([{ policies: { directResponse: { body: 'x' } } }], { config: { adminAddr: 'off', ...more } });
const addressOf = (stderr: string, component: string): string =>
  new RegExp(`address="(\\S+)" component="${component}"`).exec(stderr)?.[1] as string;

/** Checks the text format 0.0.4 of Prometheus: HELP and TYPE name what follows them, and there are no other comments. */
function checkPlainText(text: string): void {
  const types = new Map<string, string>();
  const suffixes: Record<string, string> = { counter: '', gauge: '', histogram: '(?:_bucket|_sum|_count)' };
  let current = '';
  for (const line of text.trimEnd().split('\n')) {
    const [, word, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
    if (word === 'HELP') current = name;
    else if (word === 'TYPE') types.set(name, rest);
    else if (line.startsWith('#')) throw new Error(`a comment of another format: ${line}`);
    else expect(line).toMatch(new RegExp(`^${current}${suffixes[types.get(current) ?? '']}(?:\\{|\\s)`));
    if (word === 'TYPE') expect(name).toBe(current);
  }
  // What `promtool check metrics` asks of their names.
  for (const [name, type] of types) expect(name.endsWith('_total')).toBe(type === 'counter');
  expect(types.get('gw_requests_total')).toBe('counter');
}

describe('the metrics and readiness servers', () => {
  test('the metrics and readiness servers answer scrapes and probes', async () => {
    const env = { STATS_ADDR: undefined, READINESS_ADDR: undefined };
    const addresses = { statsAddr: '127.0.0.1:0', readinessAddr: 'localhost:0' };
    await using served = await serve(config(addresses), { env });
    await (await fetch(served.url)).text();
    const stats = `http://${addressOf(served.stderr, 'stats')}`;
    for (const path of ['/metrics', '/stats/prometheus', '/metrics?x=1']) {
      const scraped = await fetch(stats + path, { method: 'POST' });
      expect(scraped.status).toBe(200);
      expect(scraped.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    }
    // What Prometheus 3 sends.
    const PROMETHEUS =
      'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1';
    for (const [accept, isOpen] of [
      [undefined, false],
      ['*/*', false],
      ['text/plain', false],
      ['text/plain; version=0.0.4', false],
      ['text/html, */*;q=0.8', false],
      ['application/openmetrics-text;q=0.3, text/plain;version=0.0.4;q=0.5', false],
      ['application/openmetrics-text;q=0, text/plain;version=0.0.4;q=0', false],
      ['application/openmetrics-text', true],
      ['application/openmetrics-text;version=1.0.0,text/plain;q=0.5', true],
      [PROMETHEUS, true],
    ] as const) {
      const asked = accept === undefined ? {} : { headers: { accept } };
      const { headers: answered, text } = await send(`${stats}/metrics`, asked);
      const type = isOpen ? 'application/openmetrics-text; version=1.0.0' : 'text/plain; version=0.0.4';
      expect([accept, answered['content-type']]).toEqual([accept, `${type}; charset=utf-8`]);
      if (isOpen) expect(parseMetrics(text).get('gw_requests')?.samples).toHaveLength(1);
      else checkPlainText(text);
    }
    for (const [encoding, expected] of Object.entries({
      'gzip, deflate': 'gzip',
      'br;q=1, GZIP;q=0.5': 'gzip',
      'gzip;q=0': undefined,
      'identity, gzip;q=0.0, x-gzip': undefined,
    })) {
      const headers = { accept: 'application/openmetrics-text', 'accept-encoding': encoding };
      const scraped = await send(`${stats}/metrics`, { headers });
      expect([encoding, scraped.headers['content-encoding']]).toEqual([encoding, expected]);
      const text = expected === undefined ? scraped.text : gunzipSync(scraped.body).toString();
      expect(parseMetrics(text).get('gw_requests')?.samples).toHaveLength(1);
    }
    expect((await fetch(`${stats}/else`)).status).toBe(404);
    const ready = `http://${addressOf(served.stderr, 'readiness')}`;
    const probe = await fetch(`${ready}/healthz/ready`);
    expect(`${probe.status} ${await probe.text()}`).toBe('200 ready\n');
    const wrong = await fetch(`${ready}/healthz/ready`, { method: 'POST' });
    expect(`${wrong.status} ${await wrong.text()}`).toBe('405 ');
    expect((await fetch(ready)).status).toBe(404);
  });

  test('the readiness server names the missing parts, and startup stays true during a shutdown', async () => {
    const readiness = new Readiness();
    const b = readiness.begin('b');
    const a = readiness.begin('a');
    const server = createServer(readinessHandler(readiness)).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/healthz`;
    const probe = async (name: string): Promise<string> => {
      const response = await fetch(`${url}/${name}`);
      return `${response.status} ${await response.text()}`;
    };
    expect(await probe('live')).toBe('200 live\n');
    expect(await probe('ready')).toBe('500 not ready, pending: a, b\n');
    expect(await probe('startup')).toBe('500 not started, pending: a, b\n');
    b();
    expect(await probe('ready')).toBe('500 not ready, pending: a\n');
    a();
    expect(await probe('ready')).toBe('200 ready\n');
    expect(await probe('startup')).toBe('200 started\n');
    readiness.begin('draining');
    expect(await probe('ready')).toBe('500 not ready, pending: draining\n');
    expect(await probe('startup')).toBe('200 started\n');
    expect(await probe('live')).toBe('200 live\n');
    expect(await probe('constructor')).toBe('404 ');
    server.close();
    server.closeAllConnections();
  });

  test('a gateway that drains is live but not ready', async () => {
    await using served = await serve(
      mcpConfig([chaos('a')], {
        config: { readinessAddr: '127.0.0.1:0', connectionTerminationDeadline: '15s' },
      }),
      { env: { READINESS_ADDR: undefined } },
    );
    const session = await openSession(`${served.url}/mcp`);
    const call = session
      .send({ id: 1, method: 'tools/call', params: { name: 'hang' } })
      .catch(() => undefined);
    // The responses arrive in order on one pipe, so the call has arrived.
    await session.request('ping');
    const probe = async (name: string): Promise<number> =>
      (await fetch(`http://${addressOf(served.stderr, 'readiness')}/healthz/${name}`)).status;
    expect(await Promise.all(['live', 'ready', 'startup'].map(probe))).toEqual([200, 200, 200]);
    served.kill('SIGTERM');
    await until(() => served.stderr.includes('finishing open requests'));
    expect(await Promise.all(['live', 'ready', 'startup'].map(probe))).toEqual([200, 500, 200]);
    served.kill('SIGTERM');
    await call;
  });
});

describe('an address in use', () => {
  test('an address in use is a warning for the default address and an error for a configured one', async () => {
    await using taken = await busyPort('127.0.0.1');
    const address = `127.0.0.1:${taken.port}`;
    const lines: string[] = [];
    const sink = {
      write: (line: string) => void lines.push(line),
      dropped: 0,
      flush: () => Promise.resolve(),
    };
    const log = createLog(sink, 'info', 'text');
    const server = {
      component: 'stats',
      key: 'statsAddr',
      variable: 'STATS_ADDR',
      fallback: address,
      configured: undefined,
      onRequest: () => undefined,
    };
    expect(await openOperatorServer(server, {}, log)).toBeUndefined();
    expect(lines).toEqual([
      expect.stringMatching(
        `\twarn\tproxy::gateway\tthe stats server did not start: ${address} is already in use\thelp="set config.statsAddr to another address, or to off"\n`,
      ),
    ]);
    // The default port on loopback alone, which `agctl init` writes.
    const loopback = { ...server, fallback: `:${taken.port}`, configured: `localhost:${taken.port}` };
    expect(await openOperatorServer(loopback, {}, log)).toBeUndefined();
    const asked = openOperatorServer({ ...server, configured: address }, {}, log);
    await expect(asked).rejects.toThrow(OperatorServerError);
    await expect(openOperatorServer(server, { STATS_ADDR: address }, log)).rejects.toThrow('already in use');
    await expect(openOperatorServer(server, { STATS_ADDR: 'nowhere' }, log)).rejects.toThrow(
      'STATS_ADDR: `nowhere` is not an address',
    );
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'a.yaml');
    writeFileSync(file, config({ statsAddr: address }));
    const { code, stderr } = await cli(['serve', '-f', file]);
    expect(code).toBe(1);
    expect(stderr).toContain(`error[AGW0401]: ${address} is already in use`);
  });

  test('an invalid server address is rejected with the accepted forms', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'a.yaml');
    writeFileSync(file, config({ readinessAddr: 'example.com:1' }));
    const { code, stderr } = await cli(['config', 'validate', '-f', file]);
    expect(code).toBe(1);
    expect(stderr).toContain('expected `ip:port`, `localhost:port`');
  });
});
