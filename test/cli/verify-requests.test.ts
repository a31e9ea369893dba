import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { GatewayConfig } from '../../src/library/index.ts';
import { replayCassette, testGateway } from '../../src/library/testing/index.ts';
import { writeCassette } from '../kit/cassette.ts';
import { cli } from '../kit/cli.ts';
import { ERA_CLIENTS } from '../kit/era-clients.ts';
import { everythingHttp } from '../kit/everything-target.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { INITIALIZE, type Json, toolCall } from '../kit/mcp.ts';
import { until } from '../kit/until.ts';
import { httpUpstream } from '../kit/upstream.ts';

const post = (url: string, body: unknown) =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });

interface Reported {
  readonly severity: string;
  readonly code: string;
  readonly message: string;
  readonly notes?: readonly string[];
  readonly range: { readonly file: string; readonly start: { readonly line: number } };
}

test('verify says where a request has no secret any more, and sends no redacted parameter', async () => {
  await using folder = await temporaryFolder();
  const cassette = join(folder.path, 'cassette.jsonl');
  let login = 'welcome';
  await using upstream = await httpUpstream((request, response, { body }) => {
    if (request.url === '/login') response.end(`${login} ${JSON.parse(body).user}`);
    else if (request.url === '/form')
      response.end(body.includes('\u00ff\u0000\u0001') ? 'all bytes' : 'other bytes');
    else response.end(request.url);
  });
  const routes = [{ backends: [{ host: upstream.address }] }];
  const config: GatewayConfig = { gateways: { default: { port: 3000, routes } } };
  {
    await using gateway = await testGateway(config, { record: cassette });
    await (await post(`${gateway.url}/login`, { user: 'ada', password: 'hunter22' })).text();
    const body = new FormData();
    body.append('model', 'whisper');
    body.append('file', new Blob([Buffer.from([0xff, 0, 1])], { type: 'audio/wav' }), 'a.wav');
    expect(await (await fetch(`${gateway.url}/form`, { method: 'POST', body })).text()).toBe('all bytes');
    await (await fetch(`${gateway.url}/list?a=1&key=canary-of-a-client`)).text();
  }
  login = 'wrong password,';
  const file = join(folder.path, 'gateway.yaml');
  writeFileSync(file, JSON.stringify(config));
  const { stdout } = await cli(['verify', cassette, '-f', file, '-o', 'json']);
  expect(JSON.parse(stdout).diagnostics.map((each: Reported) => [each.severity, each.message])).toEqual([
    ['error', 'POST /login: the result is not as recorded'],
    ['note', 'POST /login: the request has <redacted> in place of a secret'],
    ['error', 'GET /list: the result is not as recorded'],
  ]);
  expect(upstream.received.at(-1)?.target).toBe('/list?a=1');
});

test('later requests repeat what a service mints this time, not what it had minted', async () => {
  await using folder = await temporaryFolder();
  const cassette = join(folder.path, 'cassette.jsonl');
  const known = new Set<string>();
  await using upstream = await httpUpstream((request, response, { body }) => {
    response.setHeader('content-type', 'application/json');
    if (request.method === 'GET') {
      const isKnown = known.has(request.url?.split('/')[2] ?? '');
      response.statusCode = isKnown ? 200 : 404;
      return response.end(JSON.stringify({ isKnown }));
    }
    const { previous_response_id: previous } = JSON.parse(body);
    const id = `item-${randomUUID()}`;
    known.add(id);
    return response.end(JSON.stringify({ id, follows: previous === undefined || known.has(previous) }));
  });
  const routes = [{ backends: [{ host: upstream.address }] }];
  const config: GatewayConfig = { gateways: { default: { port: 3000, routes } } };
  {
    await using gateway = await testGateway(config, { record: cassette });
    const { id }: Json = await (await post(`${gateway.url}/items`, {})).json();
    await (await post(`${gateway.url}/items`, { previous_response_id: id })).text();
    await (await fetch(`${gateway.url}/items/${id}?view=all`)).text();
  }
  const recorded = [...known];
  known.clear();
  const file = join(folder.path, 'gateway.yaml');
  writeFileSync(file, JSON.stringify(config));
  const { code, stderr } = await cli(['verify', cassette, '-f', file, '--ignore', 'id']);
  expect(stderr).toMatch(/: 3 of 3 requests as recorded/);
  expect(code).toBe(0);
  expect(recorded.some((id) => known.has(id))).toBe(false);
});

test('verify does not send what was not recorded whole, and compares nothing with what was not', async () => {
  await using folder = await temporaryFolder();
  const cassette = join(folder.path, 'cassette.jsonl');
  const omitted = { omitted: 'it is larger than 16777216 bytes' };
  const request = { method: 'POST', target: '/', headers: {} };
  const response = { ms: 1, status: 200, headers: {} };
  writeCassette(cassette, [
    { at: 0, request: { ...request, body: omitted }, response },
    { at: 9, request, response: { ...response, body: omitted } },
    { at: 19, request, response: { ms: 0, status: 0, headers: {}, cut: 'client' } },
  ]);
  await using upstream = await httpUpstream((_, reply) => void reply.end('any'));
  const against = `http://${upstream.address}`;
  const { code, stdout } = await cli(['verify', cassette, '--against', against, '-o', 'json', '--strict']);
  expect(JSON.parse(stdout).diagnostics.map((each: Reported) => [each.severity, each.message])).toEqual([
    ['note', 'POST /: its body was not recorded: it is larger than 16777216 bytes'],
    ['note', 'POST /: its answer was not recorded: it is larger than 16777216 bytes'],
    ['note', 'POST /: it had no answer when it was recorded'],
  ]);
  expect(code).toBe(0);
  expect(upstream.received.map(({ method }) => method)).toEqual(['HEAD', 'POST', 'POST']);
});

test('verify reports a request of the server that was not recorded, and refuses it', async () => {
  await using folder = await temporaryFolder();
  const cassette = join(folder.path, 'cassette.jsonl');
  const sent = (at: number, json: object, response: object) => ({
    at,
    session: 's',
    request: {
      method: 'POST',
      target: '/mcp',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: { json: { jsonrpc: '2.0', ...json } },
    },
    response: { ms: 1, status: 200, headers: {}, ...response },
  });
  const text = (id: number, result: object) => ({ body: { json: { jsonrpc: '2.0', id, result } } });
  writeCassette(cassette, [
    sent(0, INITIALIZE, text(0, { protocolVersion: '2025-06-18' })),
    sent(10, { method: 'notifications/initialized' }, { status: 202 }),
    sent(20, toolCall(1, 'test_elicitation', { message: 'Who?' }), text(1, { content: [] })),
  ]);
  const target = await everythingHttp('everything', 'both');
  const file = join(folder.path, 'gateway.yaml');
  writeFileSync(file, JSON.stringify({ mcp: { port: 3000, targets: [target.config] } }));
  const { stdout } = await cli(['verify', cassette, '-f', file, '-o', 'json', '--ignore', 'result']);
  await target.stop();
  expect(JSON.parse(stdout).diagnostics.map((each: Reported) => each.message)).toContain(
    'POST /mcp tools/call test_elicitation: the server sends elicitation/create, which was not recorded',
  );
});

test('verify answers requests of servers as recorded, waits for streams and cancels as the clients did', async () => {
  await using folder = await temporaryFolder();
  const cassette = join(folder.path, 'cassette.jsonl');
  const target = await everythingHttp('everything', 'both');
  const config = { mcp: { port: 3000, targets: [target.config] } } as GatewayConfig;
  {
    await using gateway = await testGateway(config, { record: cassette });
    for (const { client: name, connect } of ERA_CLIENTS) {
      await using client = await connect(`${gateway.url}/mcp`);
      await client.call('test_tool_with_progress', {}, { onprogress: () => undefined });
      await client.call('test_elicitation', { message: 'Who?' });
      await client.call('test_sampling', { prompt: 'Say it' });
      await client.call('test_input_required_result_multiple_inputs');
      await client.watch('test://watched-resource');
      await client.call('test_trigger_resource_update');
      await until(() => client.changes.length > 0);
      const controller = new AbortController();
      const onprogress = () => controller.abort();
      await client
        .call('test_wait', { name }, { signal: controller.signal, onprogress })
        .catch(() => undefined);
    }
  }
  const file = join(folder.path, 'gateway.yaml');
  writeFileSync(file, JSON.stringify(config));
  const { code, stdout, stderr } = await cli(['verify', cassette, '-f', file, '-o', 'json']);
  await target.stop();
  expect(stderr).toBe('');
  expect(JSON.parse(stdout).diagnostics).toEqual([]);
  expect(code).toBe(0);

  // A replay is as recorded, too.
  await using replay = await replayCassette(cassette);
  const again = await cli(['verify', cassette, '--against', replay.url, '--strict', '-o', 'json']);
  expect(JSON.parse(again.stdout).diagnostics).toEqual([]);
  expect(replay.unmatched).toEqual([expect.stringMatching(/^HEAD \/ is not in the cassette/)]);
});
