import { Agent, request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { AT_ONCE } from '../../kit/at-once.ts';
import { askPolicy } from '../../kit/authz.ts';
import { unansweringPort } from '../../kit/deaf.ts';
import { gateway } from '../../kit/gateway.ts';
import { INITIALIZE, post } from '../../kit/mcp.ts';
import { mcpUpstream } from '../../kit/mcp-upstream.ts';
import { answeringGateway, proxyGateway, routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { type Answer, httpUpstream } from '../../kit/upstream.ts';

/** Never answers; `left` counts the callers that disconnected. */
function silent(): { answer: Answer; left: () => number } {
  let count = 0;
  const answer: Answer = (_, response) =>
    response.on('close', () => {
      count += 1;
    });
  return { answer, left: () => count };
}

/** The reply and its duration in ms. */
async function timed(
  url: string,
  headers = {},
): Promise<{ status: number; text: string; took: number; headers: object }> {
  const started = performance.now();
  const reply = await send(url, { headers });
  return { ...reply, took: performance.now() - started };
}

describe('requestTimeout', () => {
  test('requestTimeout ends a request and the backend call that does not answer', async () => {
    const { answer, left } = silent();
    await using backend = await httpUpstream(answer);
    await using gate = await proxyGateway(backend.address, {
      timeout: { requestTimeout: '150ms' },
      cors: { allowOrigins: ['*'] },
    });
    const reply = await timed(gate.url, { origin: 'https://a.example' });
    expect(reply).toMatchObject({ status: 504, text: 'request timeout' });
    expect(reply.took).toBeGreaterThan(140);
    expect(reply.took).toBeLessThan(AT_ONCE);
    // A page must be able to read the error.
    expect(reply.headers).toMatchObject({ 'access-control-allow-origin': 'https://a.example' });
    await until(() => left() === 1);
    expect(await gate.accessLine(1)).toMatchObject({
      'http.status': '504',
      error: 'request timeout',
      reason: 'Timeout',
    });
  });

  test('requestTimeout includes the time of external authorization', async () => {
    await using service = await httpUpstream(silent().answer);
    await using gate = await answeringGateway({
      timeout: { requestTimeout: '100ms' },
      ...askPolicy(service.address),
    });
    const reply = await timed(gate.url);
    expect(reply).toMatchObject({ status: 504, text: 'request timeout' });
    expect(reply.took).toBeLessThan(AT_ONCE);
  });

  test('requestTimeout includes the time of a body that an expression waits for', async () => {
    await using gate = await answeringGateway({
      timeout: { requestTimeout: '100ms' },
      authorization: { rules: ['size(request.body) > 0'] },
    });
    const status = await new Promise((resolve, reject) => {
      const call = request(gate.url, { method: 'POST', headers: { 'content-length': '10' } }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      call.on('error', reject);
      call.write('half');
    });
    expect(status).toBe(504);
  });

  test('requestTimeout does not abort a response that has begun', async () => {
    await using backend = await httpUpstream((_, response) => {
      response.write('early ');
      setTimeout(() => response.end('late'), 1_500);
    });
    await using gate = await proxyGateway(backend.address, { timeout: { requestTimeout: '1s' } });
    expect(await send(gate.url)).toMatchObject({ status: 200, text: 'early late' });
  });

  test('requestTimeout does not delay requests within the limit', async () => {
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(backend.address, { timeout: { requestTimeout: '5s' } });
    expect((await timed(gate.url)).took).toBeLessThan(AT_ONCE);
  });

  test('requestTimeout prevents backend calls after it has elapsed', async () => {
    let isSilent = true;
    await using service = await httpUpstream((_, response) => (isSilent ? undefined : response.end()));
    await using target = await mcpUpstream();
    // With failureMode allow, the request would continue as soon as the call is aborted.
    const policies = {
      timeout: { requestTimeout: '500ms' },
      ...askPolicy(service.address, {}, { failureMode: 'allow' }),
    };
    const backends = [{ mcp: { targets: [{ name: 'a', mcp: { host: target.url } }] } }];
    await using gate = await gateway(routesConfig([{ policies, backends }]));
    expect((await post(`${gate.url}/mcp`, INITIALIZE)).status).toBe(504);
    isSilent = false;
    expect((await post(`${gate.url}/mcp`, INITIALIZE)).status).toBe(200);
    expect(target.of('initialize')).toHaveLength(1);
  });
});

describe('backendRequestTimeout', () => {
  test('backendRequestTimeout ends a backend call without a response', async () => {
    const { answer, left } = silent();
    await using backend = await httpUpstream(answer);
    await using gate = await proxyGateway(backend.address, { timeout: { backendRequestTimeout: '150ms' } });
    const reply = await timed(gate.url);
    expect(reply).toMatchObject({ status: 504, text: 'upstream call timeout' });
    expect(reply.took).toBeGreaterThan(140);
    expect(reply.took).toBeLessThan(2500);
    await until(() => left() === 1);
    expect(await gate.accessLine(1)).toMatchObject({ error: 'upstream call timeout', reason: 'Timeout' });
  });

  test('backendRequestTimeout does not include the time before the backend call', async () => {
    await using service = await httpUpstream((_, response) => void setTimeout(() => response.end(), 300));
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(backend.address, {
      timeout: { backendRequestTimeout: '150ms' },
      ...askPolicy(service.address),
    });
    expect((await send(gate.url)).status).toBe(200);
  });

  test('backendRequestTimeout does not abort a response that has begun', async () => {
    await using backend = await httpUpstream((_, response) => {
      response.write('early ');
      setTimeout(() => response.end('late'), 300);
    });
    await using gate = await proxyGateway(backend.address, { timeout: { backendRequestTimeout: '100ms' } });
    expect(await send(gate.url)).toMatchObject({ status: 200, text: 'early late' });
  });

  test('backendRequestTimeout includes the time to connect', async () => {
    await using deaf = await unansweringPort();
    await using gate = await proxyGateway(`127.0.0.1:${deaf.port}`, {
      timeout: { backendRequestTimeout: '150ms' },
    });
    const agent = new Agent();
    const reply = await Promise.race([
      send(gate.url, { agent }),
      until(() => false, 1000).catch(() => 'waiting'),
    ]);
    // The gateway waits for open requests when it closes.
    agent.destroy();
    expect(reply).toMatchObject({ status: 504 });
  });
});

test.each(['requestTimeout', 'backendRequestTimeout'])('the timeout %s must be a duration', async (field) => {
  await expect(answeringGateway({ timeout: { [field]: '5 seconds' } })).rejects.toThrow(`timeout.${field}`);
  await expect(answeringGateway({ timeout: { [field]: 5 } })).rejects.toThrow(`timeout.${field}`);
});
