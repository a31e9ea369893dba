import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { chaos } from '../../kit/config.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import {
  answering,
  CHAT,
  chat,
  chunk,
  completion,
  DONE,
  FINISH,
  llmProvider,
  streaming,
} from '../../kit/llm-provider.ts';
import { openSession } from '../../kit/mcp.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { llmSection, recordingGateway } from './recorded.ts';

const CATALOG = {
  modelCatalog: [
    {
      inline: {
        providers: { openai: { models: { 'acme-mini-1': { rates: { input: '1', output: '2' } } } } },
      },
    },
  ],
};

const WEATHER = { name: 'weather', arguments: '{"city":"Oslo"}' };

const mcpSection = (...flags: string[]) => ({
  gateways: {
    default: {
      port: 0,
      routes: [{ name: 'tools', backends: [{ mcp: { targets: [chaos('one', ...flags)] } }] }],
    },
  },
});

describe('the record of an LLM call', () => {
  test('has caller, models, tokens, cost and times, and by default no contents', async () => {
    await using provider = await llmProvider(answering(completion('the secret of the sea')));
    const keys = [
      { key: 'sk-alice-000000000000', metadata: { name: 'alice-laptop', user: 'alice', team: 'red' } },
    ];
    await using recording = await recordingGateway({
      config: CATALOG,
      more: llmSection(provider, { policies: { apiKey: { keys, mode: 'strict' } } }),
    });
    const headers = { authorization: 'Bearer sk-alice-000000000000', 'user-agent': 'test/1' };
    expect((await chat(recording.gate, CHAT, headers)).status).toBe(200);
    const [record] = await recording.records('', 1);
    expect(record).toEqual({
      id: 1,
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      durationMs: expect.any(Number),
      protocol: 'llm',
      operation: 'chat',
      listener: 'llm',
      route: expect.any(String),
      path: '/v1/chat/completions',
      status: 200,
      key: 'alice-laptop',
      user: 'alice',
      group: 'red',
      client: '127.0.0.1',
      userAgent: 'test/1',
      provider: 'openai',
      model: 'acme-mini',
      usedModel: 'acme-mini-1',
      inputTokens: 12,
      outputTokens: 7,
      costUsd: '0.000026',
    });
    expect((await recording.get('/api/records/1')).payload).toBeUndefined();
    await recording.gate.close();
    expect(recording.bytes()).toContain('alice-laptop');
    for (const content of ['the secret of the sea', 'sk-alice'])
      expect(recording.bytes()).not.toContain(content);
  });

  test('with full payloads has the conversation, also of a stream, with tool calls', async () => {
    await using provider = await llmProvider(
      streaming((response) =>
        response.end(
          [
            chunk({ content: 'Hel' }),
            chunk({ content: 'lo' }),
            chunk({ tool_calls: [{ index: 0, id: 'c1', function: { name: 'add', arguments: '{"a":1}' } }] }),
            FINISH,
            DONE,
          ].join(''),
        ),
      ),
    );
    await using recording = await recordingGateway({
      record: { payloads: 'full' },
      more: llmSection(provider),
    });
    await chat(recording.gate, { ...CHAT, stream: true });
    const [found] = await recording.records('text=hello', 1);
    expect(found).toMatchObject({ streamed: true, firstTokenMs: expect.any(Number) });
    expect(found.cut).toBeUndefined();
    expect((await recording.get(`/api/records/${found.id}`)).payload).toEqual({
      messages: [{ role: 'user', content: 'Hi' }],
      texts: ['Hello'],
      toolCalls: [{ id: 'c1', name: 'add', arguments: { a: 1 } }],
    });
  });

  test.each([
    [
      'Chat Completions',
      '/v1/chat/completions',
      {
        ...CHAT,
        messages: [
          {
            role: 'assistant',
            content: null,
            tool_calls: [{ id: 'c1', type: 'function', function: WEATHER }],
          },
          { role: 'tool', tool_call_id: 'c1', content: 'rain' },
        ],
      },
    ],
    [
      'Responses',
      '/v1/responses',
      {
        model: 'gpt-4o-mini',
        input: [
          { type: 'function_call', call_id: 'c1', ...WEATHER },
          { type: 'function_call_output', call_id: 'c1', output: 'rain' },
        ],
      },
    ],
  ])('keeps tool calls and results of earlier turns of %s', async (_, path, body) => {
    await using provider = await llmProvider();
    await using recording = await recordingGateway({
      record: { payloads: 'full' },
      more: llmSection(provider),
    });
    await send(`${recording.gate.url}${path}`, { method: 'POST', body: JSON.stringify(body) });
    // The arguments are searched like everything that was said.
    const [found] = await recording.records('text=oslo', 1);
    expect((await recording.get(`/api/records/${found.id}`)).payload.messages).toEqual([
      {
        role: 'assistant',
        content: '',
        toolCalls: [{ id: 'c1', name: 'weather', arguments: { city: 'Oslo' } }],
      },
      { role: 'tool', content: 'rain' },
    ]);
  });

  test('says who cut a stream, and why its tokens are an estimate', async () => {
    await using provider = await llmProvider(
      streaming((response) => {
        response.write(chunk({ content: 'one two three' }));
        // The second call waits for its client to leave.
        if (provider.received.length === 1) setImmediate(() => response.destroy());
      }),
    );
    await using recording = await recordingGateway({ record: { llm: 'full' }, more: llmSection(provider) });
    await chat(recording.gate, { ...CHAT, stream: true }).catch(() => undefined);
    const [byProvider] = await recording.records('', 1);
    expect(byProvider).toMatchObject({
      cut: 'upstream',
      outputTokens: expect.any(Number),
      usageEstimated: expect.stringContaining('before the provider reported usage'),
    });
    const leaving = new AbortController();
    const reply = await fetch(`${recording.gate.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...CHAT, stream: true }),
      signal: leaving.signal,
    });
    await reply.body?.getReader().read();
    leaving.abort();
    const [byClient] = await recording.records('', 2);
    expect(byClient).toMatchObject({
      cut: 'client',
      usageEstimated: expect.stringContaining('the client disconnected'),
    });
    expect((await recording.get(`/api/records/${byClient.id}`)).payload.texts).toEqual(['one two three']);
  });

  test('keeps the cost of its own end when the price changes while it runs', async () => {
    let answer: (() => void) | undefined;
    await using provider = await llmProvider((_, response) => {
      answer = () => response.writeHead(200, { 'content-type': 'application/json' }).end(completion('x'));
    });
    const more = llmSection(provider);
    await using recording = await recordingGateway({ config: CATALOG, more, options: { live: 'asked' } });
    const calling = chat(recording.gate);
    await until(() => answer !== undefined);
    const { writeFileSync, readFileSync } = await import('node:fs');
    const file = `${recording.folder}/test.yaml`;
    writeFileSync(file, readFileSync(file, 'utf8').replace('"input":"1"', '"input":"1000"'));
    await recording.gate.live.reload();
    answer?.();
    await calling;
    const [first] = await recording.records('', 1);
    // The price of the configuration that the call began with.
    expect(first.costUsd).toBe('0.000026');
    answer = undefined;
    const next = chat(recording.gate);
    await until(() => answer !== undefined);
    (answer as unknown as () => void)();
    await next;
    const [second] = await recording.records('', 2);
    expect(second.costUsd).toBe('0.012014');
  });

  test('has the requested model and the error of a call that was refused', async () => {
    await using provider = await llmProvider(
      answering('{"error":{"type":"overloaded","message":"busy"}}', 529),
    );
    await using recording = await recordingGateway({ more: llmSection(provider) });
    await chat(recording.gate);
    await chat(recording.gate, '{"model": 5}');
    const [invalid] = await recording.records('status=4xx', 1);
    const [failed] = await recording.records('status=error', 1);
    expect(failed).toMatchObject({
      status: 529,
      model: 'acme-mini',
      error: expect.stringContaining('overloaded'),
    });
    expect(invalid).toMatchObject({ status: 400, error: expect.stringContaining('model') });
  });
});

describe('the record of an MCP call', () => {
  test('has target, tool and session, and with full payloads arguments and result', async () => {
    await using recording = await recordingGateway({
      record: { payloads: 'full' },
      more: mcpSection(),
    });
    const session = await openSession(`${recording.gate.url}/mcp`);
    await session.request('tools/call', { name: 'read', arguments: { path: '/a', password: 'open-sesame' } });
    await session.request('tools/call', {
      name: 'fail',
      arguments: { code: -32001, message: 'no such file' },
    });
    const [failed, called] = await recording.records('operation=tools/call', 2);
    expect(called).toMatchObject({
      protocol: 'mcp',
      target: 'one',
      tool: 'read',
      status: 200,
      route: 'default/tools',
    });
    expect(called.session).toEqual(expect.any(String));
    expect(failed).toMatchObject({ tool: 'fail', error: expect.stringContaining('no such file') });
    expect((await recording.get(`/api/records/${called.id}`)).payload).toEqual({
      arguments: { path: '/a', password: expect.not.stringContaining('sesame') },
      result: { content: [{ type: 'text', text: 'one read' }] },
    });
    expect(await recording.records(`session=${encodeURIComponent(called.session)}`, 3)).not.toHaveLength(0);
    await session.end();
  });
});

describe('redaction of the record', () => {
  const CARD = '4111 1111 1111 1111';
  const KEY = 'sk-proj-abcdefghijklmnopqrstuvwxyz0123';

  test('no card number, API key, or secret of the configuration is in any file of the database', async () => {
    await using provider = await llmProvider(
      answering(completion(`Your card ${CARD} and key ${KEY}.\n${CARD}`)),
    );
    const section = llmSection(provider);
    Object.assign(section.llm.models[0]?.params as object, { apiKey: 'unrecognizable-provider-credential' });
    await using recording = await recordingGateway({ record: { payloads: 'full' }, more: section });
    const messages = [
      { role: 'user', content: `pay with\n${CARD}, key:\t${KEY} or unrecognizable-provider-credential` },
      { role: 'user', content: [{ type: 'text', text: `{"card":"${CARD}"}` }] },
    ];
    const headers = { 'user-agent': `agent ${CARD} ${KEY}` };
    await chat(recording.gate, { model: `m ${CARD}`, messages }, headers);
    await chat(recording.gate, { model: KEY, messages: 5 }, headers);
    const [, found] = await recording.records('', 2);
    const { payload } = await recording.get(`/api/records/${found.id}`);
    expect(payload.messages[0].content).toBe('pay with\n<CREDIT_CARD>, key:\t<API_KEY> or <redacted>');
    expect(payload.texts).toEqual(['Your card <CREDIT_CARD> and key <API_KEY>.\n<CREDIT_CARD>']);
    await recording.gate.close();
    const bytes = recording.bytes();
    expect(bytes).toContain('<CREDIT_CARD>');
    for (const secret of [CARD, CARD.replaceAll(' ', ''), '1111', KEY, 'abcdefghij', 'unrecognizable'])
      expect(bytes, secret).not.toContain(secret);
  });

  test('a card number in the arguments of a tool is replaced as text, as a number and as a key', async () => {
    await using recording = await recordingGateway({
      record: { payloads: 'full' },
      more: mcpSection('--tools=read'),
    });
    const session = await openSession(`${recording.gate.url}/mcp`);
    const given = { text: CARD, number: 4111111111111111, list: [{ [CARD]: 'x' }] };
    await session.request('tools/call', { name: 'read', arguments: given });
    const [{ id }] = (await recording.records('tool=read', 1)) as [{ id: number }];
    expect((await recording.get(`/api/records/${id}`)).payload.arguments).toEqual({
      text: '<CREDIT_CARD>',
      number: '<CREDIT_CARD>',
      list: [{ '<CREDIT_CARD>': 'x' }],
    });
    await session.end();
    await recording.gate.close();
    expect(recording.bytes()).not.toContain('1111');
  });

  test('credentials that the configuration has in files are replaced, also once a file has changed', async () => {
    await using provider = await llmProvider(answering(completion('the key is unrecognizable-one')));
    await using secrets = await temporaryFolder();
    const [key, clients] = ['key', 'clients'].map((name) => join(secrets.path, name)) as [string, string];
    writeFileSync(key, 'unrecognizable-one\n');
    writeFileSync(clients, 'unrecognizable-two\nunrecognizable-three\n');
    const section = llmSection(provider, { policies: { apiKey: { keys: [{ key: { file: clients } }] } } });
    Object.assign(section.llm.models[0] as object, { auth: { key: { file: key } } });
    await using recording = await recordingGateway({
      record: { payloads: 'full' },
      more: section,
      options: { live: 'asked' },
    });
    const said = async (content: string): Promise<string> => {
      const count = recording.gate.accessLog.length + 1;
      await chat(recording.gate, { ...CHAT, messages: [{ role: 'user', content }] });
      const [{ id }] = (await recording.records('', count)) as [{ id: number }];
      const { payload } = await recording.get(`/api/records/${id}`);
      return `${payload.messages[0].content} ${payload.texts[0]}`;
    };
    expect(await said('unrecognizable-two, unrecognizable-three')).toBe(
      '<redacted>, <redacted> the key is <redacted>',
    );
    writeFileSync(key, 'unrecognizable-four\n');
    expect(await recording.gate.live.reload()).toBe(true);
    expect(await said('unrecognizable-four')).toBe('<redacted> the key is unrecognizable-one');
  });

  test.each([
    ['password=hunter22', 'password=<redacted>'],
    ['my DB_PASS: hunter22', 'my DB_PASS: <redacted>'],
    ['{"api_key": "hunter22", "city": "Oslo"}', '{"api_key": <redacted>, "city": "Oslo"}'],
    ['run it with --token hunter22 now', 'run it with --token <redacted> now'],
    ['Authorization: Token hunter22', 'Authorization: <redacted>'],
    ['Authorization: Bearer hunter2222\nHost: a', 'Authorization: <redacted>\nHost: a'],
    ['curl -H "Authorization: ApiKey hunter22" http://a', 'curl -H "Authorization: <redacted>" http://a'],
    ['Cookie: a=hunter22; b=hunter23', 'Cookie: <redacted>'],
    ['https://ada:hunter22@example.com/', 'https://<redacted>@example.com/'],
    ['https://example.com/?token=hunter22', 'https://example.com/?token=<redacted>'],
    ['eyJhbGciOiJub25lIn0.hunter22hunter22.c2ln', '<redacted>'],
    ['bypass: no, tokens matter', 'bypass: no, tokens matter'],
  ])('a credential in a text of a request and of its response is replaced: %j', async (said, shown) => {
    await using provider = await llmProvider(answering(completion(said)));
    await using recording = await recordingGateway({
      record: { payloads: 'full' },
      more: llmSection(provider),
    });
    await chat(recording.gate, { ...CHAT, messages: [{ role: 'user', content: said }] });
    const [{ id }] = (await recording.records('', 1)) as [{ id: number }];
    const { payload } = await recording.get(`/api/records/${id}`);
    expect([payload.messages[0].content, payload.texts]).toEqual([shown, [shown]]);
    await recording.gate.close();
    expect(recording.bytes()).not.toContain('hunter');
  });

  test('values under the names of credentials are replaced in arguments of tools, whatever their type', async () => {
    await using recording = await recordingGateway({
      record: { payloads: 'full' },
      more: mcpSection('--tools=read'),
    });
    const session = await openSession(`${recording.gate.url}/mcp`);
    const given = { password: 'hunter22', api_key: 48151623, passwords: ['hunter22'], note: 'pwd=hunter22' };
    await session.request('tools/call', { name: 'read', arguments: given });
    const [{ id }] = (await recording.records('tool=read', 1)) as [{ id: number }];
    expect((await recording.get(`/api/records/${id}`)).payload.arguments).toEqual({
      password: '<redacted>',
      api_key: '<redacted>',
      passwords: ['<redacted>'],
      note: 'pwd=<redacted>',
    });
    await session.end();
  });

  test('rules of the configuration replace the usual ones', async () => {
    await using provider = await llmProvider(answering(completion('ticket T-4711')));
    await using recording = await recordingGateway({
      record: { payloads: 'full', redaction: { rules: [{ pattern: 'T-\\d+' }] } },
      more: llmSection(provider),
    });
    await chat(recording.gate, { ...CHAT, messages: [{ role: 'user', content: CARD }] });
    const [{ id }] = (await recording.records('', 1)) as [{ id: number }];
    expect((await recording.get(`/api/records/${id}`)).payload).toMatchObject({
      messages: [{ content: CARD }],
      texts: ['ticket <masked>'],
    });
  });
});

describe('settings of the record', () => {
  test('with payloads none, only sums are kept', async () => {
    await using provider = await llmProvider();
    await using recording = await recordingGateway({
      record: { payloads: 'none' },
      more: llmSection(provider),
    });
    await chat(recording.gate);
    await until(async () => (await recording.get('/api/usage?by=model')).total.requests === 1);
    expect((await recording.get('/api/records')).records).toEqual([]);
  });

  test('added fields are expressions; key, user and group replace who is recorded', async () => {
    await using provider = await llmProvider();
    const add = {
      user: 'request.headers["x-user"]',
      tokens: 'llm.inputTokens',
      missing: 'request.headers["x-none"]',
    };
    await using recording = await recordingGateway({ record: { add }, more: llmSection(provider) });
    await chat(recording.gate, CHAT, { 'x-user': 'carol' });
    expect((await recording.records('user=carol', 1))[0]).toMatchObject({
      user: 'carol',
      added: { tokens: 12 },
    });
  });

  test('settings without a database are reported', async () => {
    await using provider = await llmProvider();
    const { gateway } = await import('../../kit/gateway.ts');
    const config = {
      frontendPolicies: { accessLog: { database: { llm: 'full' } } },
      ...llmSection(provider),
    };
    await using gate = await gateway(JSON.stringify(config));
    expect(gate.live.served.diagnostics).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          code: 'AGW0303',
          message: expect.stringContaining('there is no database'),
        }),
      ]),
    );
  });

  test('a plain request is recorded with its path, without its query', async () => {
    await using recording = await recordingGateway({
      more: {
        gateways: {
          default: { port: 0, routes: [{ policies: { directResponse: { status: 200, body: 'ok' } } }] },
        },
      },
    });
    await send(`${recording.gate.url}/a/b?token=secret-value`);
    const [record] = await recording.records('protocol=http', 1);
    expect(record).toMatchObject({ operation: 'GET', path: '/a/b', status: 200 });
    await recording.gate.close();
    expect(recording.bytes()).not.toContain('secret-value');
  });

  test('a shutdown stores what waits', async () => {
    await using provider = await llmProvider();
    await using recording = await recordingGateway({
      more: llmSection(provider),
      options: { limits: { recordDelay: 60_000 } },
    });
    await Promise.all(Array.from({ length: 5 }, () => chat(recording.gate)));
    await recording.gate.close();
    const { DatabaseSync } = await import('node:sqlite');
    const file = new DatabaseSync(`${recording.folder}/data/requests.db`);
    expect(file.prepare('SELECT count(*) AS n FROM agctl_records').get()).toEqual({ n: 5 });
    file.close();
  });
});
