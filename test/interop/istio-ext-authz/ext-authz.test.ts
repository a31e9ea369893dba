import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../kit/ports.ts';
import { proxyGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

let service: ChildProcess;
let grpc: number;
let http: number;
let output = '';

beforeAll(async () => {
  [grpc, http] = [await freePort(), await freePort()];
  service = spawn(process.env['EXT_AUTHZ'] ?? '', ['-grpc', String(grpc), '-http', String(http)]);
  service.stderr?.on('data', (chunk) => {
    output += String(chunk);
  });
  await until(() => output.includes('Starting gRPC server') && output.includes('Starting HTTP server'));
});
afterAll(() => service.kill('SIGKILL'));

describe.each(['gRPC', 'HTTP'])("extAuthz with the authorizer of Istio's samples, over %s", (protocol) => {
  const policy = (): object => ({
    extAuthz:
      protocol === 'gRPC'
        ? { host: `127.0.0.1:${grpc}` }
        : {
            host: `127.0.0.1:${http}`,
            includeRequestHeaders: ['x-ext-authz'],
            protocol: { http: { includeResponseHeaders: ['x-ext-authz-check-result'] } },
          },
  });

  test('an allowed request reaches the backend, with the headers of the authorizer', async () => {
    await using upstream = await httpUpstream();
    await using gate = await proxyGateway(upstream.address, policy());
    const reply = await send(`${gate.url}/shop?item=1`, { headers: { 'x-ext-authz': 'allow' } });
    expect(reply.status, output).toBe(200);
    const { headers } = upstream.received[0] ?? { headers: {} };
    expect(headers['x-ext-authz-check-result']).toBe('allowed');
    if (protocol === 'gRPC') {
      const seen = String(headers['x-ext-authz-check-received']);
      for (const part of [
        'method:"GET"',
        'path:"/shop?item=1"',
        '127.0.0.1',
        `host:"127.0.0.1:${gate.port}"`,
      ])
        expect(seen).toContain(part);
    }
  });

  test('a denied request gets the status of the authorizer, with gRPC also its body, and no backend sees it', async () => {
    await using upstream = await httpUpstream();
    await using gate = await proxyGateway(upstream.address, policy());
    const asked: Record<string, string>[] = [{}, { 'x-ext-authz': 'deny' }];
    for (const headers of asked) {
      const reply = await send(`${gate.url}/shop`, { headers });
      expect(reply.status, output).toBe(403);
      expect(reply.text).toContain(
        protocol === 'gRPC' ? 'denied by ext_authz for not found header' : 'external authorization failed',
      );
    }
    expect(upstream.received).toEqual([]);
  });
});

test('an authorizer that has been killed refuses requests', async () => {
  await using upstream = await httpUpstream();
  await using gate = await proxyGateway(upstream.address, { extAuthz: { host: `127.0.0.1:${grpc}` } });
  const ask = async (): Promise<number> =>
    (await send(gate.url, { headers: { 'x-ext-authz': 'allow' } })).status;
  expect(await ask()).toBe(200);
  service.kill('SIGKILL');
  await once(service, 'exit');
  expect(await ask()).toBe(403);
  expect(upstream.received).toHaveLength(1);
});
