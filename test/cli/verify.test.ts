import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { GatewayConfig } from '../../src/library/index.ts';
import {
  replayCassette,
  type StubMcpServer,
  type StubModel,
  stubMcpServer,
  stubModel,
  testGateway,
} from '../../src/library/testing/index.ts';
import { writeCassette } from '../kit/cassette.ts';
import { cli, type Ran } from '../kit/cli.ts';
import { ERA_CLIENTS } from '../kit/era-clients.ts';
import { everythingHttp } from '../kit/everything-target.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { INITIALIZE, type Json, toolCall } from '../kit/mcp.ts';
import { until } from '../kit/until.ts';
import { httpUpstream } from '../kit/upstream.ts';

const KEY = 'key-of-the-agent';

/** A gateway with a model and a server of tools. */
const configOf = (model: StubModel, files: StubMcpServer): GatewayConfig => ({
  gateways: { default: { port: 3000 } },
  llm: { models: [{ name: '*', ...model.as('openAI') }] },
  mcp: { targets: [files.target('files')] },
  config: { modelCatalog: [prices('1', '5')] },
});

const prices = (input: string, output: string) => ({
  inline: { providers: { openai: { models: { small: { rates: { input, output } } } } } },
});

const post = (url: string, body: unknown) =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });

interface Reported {
  readonly severity: string;
  readonly code: string;
  readonly message: string;
  readonly notes?: readonly string[];
  readonly range: { readonly file: string; readonly start: { readonly line: number } };
}

describe('agctl verify', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let model: StubModel;
  let files: StubMcpServer;
  let cassette: string;

  beforeAll(async () => {
    folder = await temporaryFolder();
    cassette = join(folder.path, 'cassette.jsonl');
    model = await stubModel('It is short.');
    files = await stubMcpServer({
      read: { description: 'Reads a file', run: ({ path }) => `content of ${path}` },
      delete: () => 'deleted',
    });
    await using gateway = await testGateway(configOf(model, files), { record: cassette });
    for (const { connect } of ERA_CLIENTS.slice(1, 3)) {
      await using client = await connect(`${gateway.url}/mcp`);
      await client.tools();
      await client.call('read', { path: 'a.txt' });
    }
    const chat = { model: 'small', messages: [{ role: 'user', content: 'Hi' }] };
    for (const stream of [false, true])
      await (await post(`${gateway.url}/v1/chat/completions`, { ...chat, stream })).text();
    await (await fetch(`${gateway.url}/v1/models`)).text();
  });
  afterAll(async () => {
    await model.close();
    await files.close();
    await folder.remove();
  });

  /** Verifies a configuration; resolves to what the command has reported. */
  async function verified(
    config: GatewayConfig,
    ...more: string[]
  ): Promise<Ran & { readonly reported: readonly Reported[] }> {
    const file = join(folder.path, 'gateway.yaml');
    writeFileSync(file, JSON.stringify(config));
    const ran = await cli(['verify', cassette, '-f', file, '-o', 'json', ...more]);
    return { ...ran, reported: JSON.parse(ran.stdout).diagnostics };
  }

  test('nothing differs for the configuration that was recorded, whatever the model says', async () => {
    model.answer('Other words.', 'And more of them.');
    const { code, reported } = await verified(configOf(model, files));
    expect([code, reported]).toEqual([0, []]);
  });

  test('a replay is as recorded, also with --strict', async () => {
    await using replay = await replayCassette(cassette);
    const { code, stderr } = await cli(['verify', cassette, '--against', replay.url, '--strict']);
    expect(stderr).toMatch(/cassette\.jsonl: (\d+) of \1 requests as recorded, 0 errors, 0 warnings in/);
    expect(code).toBe(0);
  });

  test('--strict compares the words of models', async () => {
    model.answer('Other words.');
    const { code, reported } = await verified(configOf(model, files), '--strict');
    expect([code, reported.map((each) => each.code)]).toEqual([1, ['AGW0503']]);
    expect(reported[0]?.notes).toEqual([
      'choices[0].message.content: recorded "It is short.", now "Other words."',
    ]);
  });

  test('a model that calls a tool instead is a warning, which --strict fails for', async () => {
    const calls = { toolCalls: [{ name: 'read', arguments: {} }], usage: { input: 10, output: 3 } };
    model.answer(calls);
    const { code, reported } = await verified(configOf(model, files));
    expect([code, reported.map((each) => [each.severity, each.code])]).toEqual([0, [['warning', 'AGW0506']]]);
    expect(reported[0]?.message).toBe(
      'POST /v1/chat/completions small: the answer of the model has another form',
    );
    expect(reported[0]?.notes).toEqual(
      expect.arrayContaining([
        'recorded, and not any more: choices[].finish_reason: "stop"',
        'new: choices[].finish_reason: "tool_calls"',
        'new: choices[].message.tool_calls[].function.name: "read"',
      ]),
    );
  });

  test('tools that are gone, new or have other definitions are found by their names', async () => {
    await using other = await stubMcpServer({
      read: {
        description: 'Reads any file',
        inputSchema: { type: 'object', required: ['path'] },
        run: ({ path }) => `content of ${path}`,
      },
      write: () => 'written',
    });
    const { code, reported } = await verified(configOf(model, other));
    expect(code).toBe(1);
    // Two clients have asked for the list.
    expect(new Set(reported.map((each) => `${each.severity} ${each.message}`))).toEqual(
      new Set([
        'error POST /mcp tools/list: the tool `delete` is not listed any more',
        'warning POST /mcp tools/list: the tool `write` is new',
        'error POST /mcp tools/list: the tool `read` is another one than was recorded',
      ]),
    );
    const { notes } = reported.find((each) => each.message.includes('another one')) as Reported;
    expect(notes).toEqual(
      expect.arrayContaining(['description: recorded "Reads a file", now "Reads any file"']),
    );
  });

  test('a result that differs is shown with its place, and can be ignored', async () => {
    await using other = await stubMcpServer({
      read: { description: 'Reads a file', run: ({ path }) => `the new content of ${path}` },
      delete: () => 'deleted',
    });
    const { code, reported } = await verified(configOf(model, other));
    expect(code).toBe(1);
    expect(reported.map((each) => [each.code, each.notes])).toEqual(
      Array(2).fill([
        'AGW0503',
        ['content[0].text: recorded "content of a.txt", now "the new content of a.txt"'],
      ]),
    );
    const lenient = await verified(configOf(model, other), '--ignore', 'result.content[*].text');
    expect([lenient.code, lenient.reported]).toEqual([0, []]);
  });

  test('policies that deny, other prices and other providers are found by what the gateway knows', async () => {
    const config = configOf(model, files);
    const denied = await verified({
      ...config,
      mcp: {
        ...config.mcp,
        policies: {
          mcpAuthorization: {
            rules: [
              { deny: 'has(mcp.tool) && has(mcp.tool.arguments.path) && mcp.tool.arguments.path == "a.txt"' },
            ],
          },
        },
      },
    } as GatewayConfig);
    expect(denied.code).toBe(1);
    expect(denied.reported.map((each) => each.message)).toContain(
      'POST /mcp tools/call read: no server answers, and files did',
    );

    const dear = await verified({ ...config, config: { modelCatalog: [prices('2', '5')] } } as GatewayConfig);
    expect(dear.reported.map((each) => [each.code, each.message])).toEqual(
      Array(2).fill([
        'AGW0505',
        expect.stringMatching(
          /^POST \/v1\/chat\/completions small: it costs \S+ USD, and \S+ USD was recorded$/,
        ),
      ]),
    );

    const moved = await verified({
      ...config,
      llm: { models: [{ name: '*', ...model.as('anthropic') }] },
      config: { modelCatalog: [] },
    } as GatewayConfig);
    expect(moved.reported.map((each) => each.message)).toEqual(
      expect.arrayContaining([
        'POST /v1/chat/completions small: anthropic provider answers, and openai did',
        expect.stringMatching(/it costs an unknown sum, and \S+ USD was recorded$/),
      ]),
    );
  });

  test('a key that clients need now is a status, with the policy; --header sends one of the environment', async () => {
    const config = configOf(model, files);
    const keys = { apiKey: { mode: 'strict', keys: [{ key: KEY }] } };
    const closed = { ...config, gateways: { default: { port: 3000 } } };
    const guarded = {
      ...closed,
      llm: { ...config.llm, policies: keys },
      mcp: { ...config.mcp, policies: keys },
    } as GatewayConfig;
    const { code, reported } = await verified(guarded);
    expect(code).toBe(1);
    const chats = reported.filter(({ message }) => message.startsWith('POST /v1/chat/completions'));
    expect(new Set(chats.map((each) => each.message))).toEqual(
      new Set([
        'POST /v1/chat/completions small: status 401, and 200 was recorded',
        'POST /v1/chat/completions small: APIKeyAuth decides, and no policy did',
      ]),
    );
    expect(chats[0]?.notes?.join()).toContain('api key authentication failure');
    // Without its session, a request is not sent.
    expect(reported.map((each) => each.message)).toContain('POST /mcp tools/list: its session has not begun');

    await using gateway = await testGateway(guarded);
    const against = ['verify', cassette, '--against', gateway.url];
    const header = ['--header', 'authorization: Bearer $AGENT_KEY'];
    const open = await cli([...against, ...header], { env: { AGENT_KEY: KEY } });
    expect(open).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(
        /cassette\.jsonl: (\d+) of \1 requests as recorded, 0 errors, 0 warnings in/,
      ),
    });
    expect(await cli([...against, ...header])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--header authorization: the variable AGENT_KEY is not set'),
    });
    expect((await cli(against)).stderr).toMatch(
      /error\[AGW0501\]: .*status 401, and 200 was recorded\n.*cassette\.jsonl:\d+:1/,
    );
    const github = await cli([...against, '-o', 'github']);
    expect(github.stdout).toMatch(/^::error file=.*cassette\.jsonl,line=\d+,.*title=AGW0501::/m);
    const sarif = JSON.parse((await cli([...against, '-o', 'sarif'])).stdout);
    expect(sarif.runs[0].results[0]).toMatchObject({ ruleId: 'AGW0501', level: 'error' });
  });

  test('what is no target is refused', async () => {
    const refused = async (...args: string[]) => {
      const { code, stderr } = await cli(['verify', cassette, ...args]);
      return [code, stderr.split('\n')[0]];
    };
    expect(await refused()).toEqual([2, 'error: expected --against or -f: what to compare with']);
    expect(await refused('--against', 'localhost')).toEqual([
      2,
      'error: --against: expected a URL such as http://127.0.0.1:3000, found localhost',
    ]);
    expect(
      await refused('--against', 'other=http://127.0.0.1:1', '--against', 'a=http://127.0.0.1:1'),
    ).toEqual([2, 'error: the recording has a gateway `default`, and here are: other, a']);
    expect(await refused('--against', 'http://127.0.0.1:1')).toEqual([
      3,
      'error: nothing answers at http://127.0.0.1:1',
    ]);
    expect((await refused('-f', join(folder.path, 'none.yaml')))[0]).toBe(2);
    const invalid = join(folder.path, 'invalid.yaml');
    writeFileSync(invalid, 'gatways: {}');
    expect((await refused('-f', invalid))[0]).toBe(1);
  });
});

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
