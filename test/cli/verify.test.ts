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
import { cli, type Ran } from '../kit/cli.ts';
import { ERA_CLIENTS } from '../kit/era-clients.ts';
import { temporaryFolder } from '../kit/folder.ts';

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
    const ofCalls = denied.reported.filter(({ message }) => message.includes('tools/call'));
    // Two clients have called it.
    expect(ofCalls.map(({ message }) => message)).toEqual([
      'POST /mcp tools/call read: Authorization decides, and no policy did',
      'POST /mcp tools/call read: the call fails, and a result was recorded',
      'POST /mcp tools/call read: Authorization decides, and no policy did',
      'POST /mcp tools/call read: the call fails, and a result was recorded',
    ]);
    expect(ofCalls[1]?.notes).toEqual([
      expect.stringMatching(/^result: recorded \{"content".*, now nothing$/),
      'error: recorded nothing, now {"code":-32602,"message":"Unknown tool: read"}',
    ]);

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

  test('a gateway with a key is verified with --header, and what was refused without one', async () => {
    await using own = await temporaryFolder();
    const [recorded, file] = [join(own.path, 'cassette.jsonl'), join(own.path, 'gateway.yaml')];
    const { models } = configOf(model, files).llm ?? {};
    const policies = { apiKey: { mode: 'strict', keys: [{ key: KEY }] } };
    const config = { gateways: { default: { port: 3000 } }, llm: { models, policies } } as GatewayConfig;
    {
      await using gateway = await testGateway(config, { record: recorded });
      for (const headers of [{ authorization: `Bearer ${KEY}` }, { authorization: 'Bearer wrong' }, {}])
        await (await fetch(`${gateway.url}/v1/models`, { headers })).text();
    }
    writeFileSync(file, JSON.stringify(config));
    const verify = (...more: string[]) => cli(['verify', recorded, '-f', file, ...more]);
    const without = await verify();
    expect([without.code, without.stderr]).toEqual([
      1,
      expect.stringContaining('the credential of the client was removed from the recording: pass one with'),
    ]);
    expect(without.stderr).toContain(': 2 of 3 requests as recorded, 2 errors,');
    // The variable is in the file beside the configuration.
    writeFileSync(join(own.path, 'gateway.env'), `AGENT_KEY=${KEY}\n`, { mode: 0o600 });
    const line = 'authorization: Bearer $AGENT_KEY';
    const { code, stderr } = await verify('--header', line);
    expect([code, stderr]).toEqual([0, expect.stringContaining(': 3 of 3 requests as recorded')]);
    const open = { ...config, llm: { models, policies: {} } };
    writeFileSync(file, JSON.stringify(open));
    expect((await verify('--header', line)).stderr).toMatch(
      /status 200, and 401 was recorded[\s\S]*it was sent without a credential/,
    );
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
    // 1 says that something differs.
    expect((await refused('-f', invalid))[0]).toBe(2);
  });
});
