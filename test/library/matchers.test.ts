import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import OpenAI from 'openai';
import { afterEach, expect, test, vi } from 'vitest';
import { createGateway } from '../../src/library/index.ts';
import {
  assertThat,
  type GatewayMatchers,
  matchers,
  stubMcpServer,
  stubModel,
  testGateway,
} from '../../src/library/testing/index.ts';

declare module 'vitest' {
  interface Matchers<R extends void | Promise<void>, T> extends GatewayMatchers<Promise<void>> {}
}
expect.extend(matchers);

const files = () => stubMcpServer({ read: () => 'content', delete: () => 'deleted' });
const policies = { mcpAuthorization: { rules: [{ deny: 'has(mcp.tool) && mcp.tool.name == "delete"' }] } };

async function call(url: string, name: string): Promise<void> {
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', url)));
  await client.callTool({ name }).catch(() => undefined);
  await client.close();
}

const chat = (url: string, model: string, apiKey = 'none') =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 }).chat.completions.create({
    model,
    messages: [{ role: 'user', content: 'Hi' }],
  });

afterEach(() => void vi.useRealTimers());

test('statements tell which tool was called, on which server', async () => {
  await using server = await files();
  await using gateway = await testGateway({ mcp: { targets: [server.target('files')] } });
  await expect(gateway).not.toHaveCalledTool('read');
  await assertThat(gateway).not.toHaveCalledTool('read');
  await expect(assertThat(gateway).toHaveCalledTool('read')).rejects.toThrow(
    /^expected a call of the tool read\n {2}no requests$/,
  );
  await call(gateway.url, 'read');
  await expect(gateway).toHaveCalledTool('read');
  await assertThat(gateway).toHaveCalledTool('read', 'files');
  await assertThat(gateway).not.toHaveCalledTool('read', 'other');
  await expect(assertThat(gateway).toHaveCalledTool('read', 'other')).rejects.toThrow(
    /^expected a call of the tool other \/ read\n {2}initialize \/mcp 200/,
  );
  await expect(assertThat(gateway).not.toHaveCalledTool('read')).rejects.toThrow(
    /^expected not a call of the tool read\n(?:.*\n)* {2}tools\/call \/mcp 200 \(files, read\)/,
  );
  gateway.clear();
  expect(gateway.requests).toEqual([]);
});

test('statements tell a call that rules deny from one that nobody tried', async () => {
  await using one = await files();
  await using other = await files();
  for (const [targets, name] of [
    [[one.target('a')], 'delete'],
    [[one.target('a'), other.target('b')], 'b_delete'],
  ] as const) {
    await using gateway = await testGateway({ mcp: { targets: [...targets], policies } });
    await assertThat(gateway).not.toHaveDeniedTool(name);
    await expect(expect(gateway).toHaveDeniedTool(name)).rejects.toThrow('that reaches no server');
    await call(gateway.url, name);
    await expect(gateway).toHaveDeniedTool(name);
    await assertThat(gateway).toHaveDeniedTool(name);
    await expect(gateway).not.toHaveCalledTool('delete');
    await expect(assertThat(gateway).not.toHaveDeniedTool(name)).rejects.toThrow('expected not a call');
  }
  await using open = await testGateway({ mcp: { targets: [one.target('a')] } });
  await call(open.url, 'delete');
  await assertThat(open).not.toHaveDeniedTool('delete');
  expect([one.calls.length, other.calls.length]).toEqual([1, 0]);
});

test('statements tell what calls cost, and which policy has denied the last request', async () => {
  await using model = await stubModel({ text: 'Hello.', usage: { input: 1_000, output: 100 } });
  await using gateway = await testGateway({
    llm: {
      models: [{ name: '*', ...model.as('openAI') }],
      policies: { apiKey: { mode: 'strict', keys: [{ key: 'key-of-the-test' }] } },
    },
    config: {
      modelCatalog: [
        { inline: { providers: { openai: { models: { m: { rates: { input: '1', output: '10' } } } } } } },
      ],
    },
  });
  await expect(chat(gateway.url, 'm', 'wrong')).rejects.toThrow();
  await expect(gateway).toBeDeniedBy('apiKey');
  await expect(gateway).not.toBeDeniedBy('rateLimit');
  await expect(gateway).toHaveCost(0);
  await chat(gateway.url, 'm', 'key-of-the-test');
  await expect(gateway).not.toBeDeniedBy('apiKey');
  await expect(gateway).toHaveCost(0.002);
  await assertThat(gateway).not.toHaveCost(0.003);
  await expect(assertThat(gateway).toHaveCost(0.003)).rejects.toThrow('cost 0.003 USD; they cost 0.002');
});

test('the cost of calls without a price is not zero: no statement on it is true', async () => {
  await using model = await stubModel();
  await using gateway = await testGateway({ llm: { models: [{ name: '*', ...model.as('openAI') }] } });
  await chat(gateway.url, 'unknown-model');
  const says = 'no price for unknown-model of openai';
  await expect(assertThat(gateway).toHaveCost(0)).rejects.toThrow(says);
  await expect(assertThat(gateway).not.toHaveCost(1)).rejects.toThrow(says);
  await expect(expect(gateway).toHaveCost(0)).rejects.toThrow(says);
  await expect(expect(gateway).not.toHaveCost(1)).rejects.toThrow(says);
});

test('calls that a provider refuses, and that never had tokens, cost nothing', async () => {
  await using model = await stubModel({ status: 429 });
  await using gateway = await testGateway({ llm: { models: [{ name: '*', ...model.as('openAI') }] } });
  await expect(chat(gateway.url, 'unknown-model')).rejects.toThrow();
  await assertThat(gateway).toHaveCost(0);
});

test('a policy that does not exist denies nothing, and is no statement', async () => {
  await using gateway = await testGateway({ gateways: { default: { port: 3000 } } });
  await (await gateway.fetch('/')).text();
  for (const name of ['apikey', 'constructor']) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- tests in JavaScript have no types.
    const policy = name as 'apiKey';
    const says = `no policy is called ${name}: it is one of apiKey, authorization, basicAuth,`;
    await expect(assertThat(gateway).toBeDeniedBy(policy)).rejects.toThrow(says);
    await expect(assertThat(gateway).not.toBeDeniedBy(policy)).rejects.toThrow(says);
    await expect(expect(gateway).not.toBeDeniedBy(policy)).rejects.toThrow(says);
  }
});

test('statements that wait too long are neither true nor false, and say so', async () => {
  await using model = await stubModel('hang');
  await using gateway = await testGateway({ llm: { models: [{ name: '*', ...model.as('openAI') }] } });
  const aborted = new AbortController();
  const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] });
  const open = gateway.fetch('/v1/chat/completions', { method: 'POST', body, signal: aborted.signal });
  await expect.poll(() => model.calls.length).toBe(1);
  vi.useFakeTimers({ toFake: ['performance'] });
  const waiting = Promise.allSettled([
    assertThat(gateway).toHaveCalledTool('read'),
    assertThat(gateway).not.toHaveCalledTool('read'),
    expect(gateway).toHaveCalledTool('read'),
    expect(gateway).not.toHaveCalledTool('read'),
    gateway.idle(),
  ]);
  vi.advanceTimersByTime(5_001);
  const message = 'still open after 5 s: POST /v1/chat/completions';
  expect(await waiting).toMatchObject(
    Array.from({ length: 5 }, () => ({ reason: { name: 'TimeoutError', message } })),
  );
  aborted.abort();
  await expect(open).rejects.toThrow('aborted');
});

test('statements are on gateways of testGateway only', async () => {
  await using gateway = await createGateway({ gateways: { default: { port: 0 } } }, { listen: false });
  for (const other of [gateway, gateway.url, undefined]) {
    await expect(expect(other).toHaveCalledTool('read')).rejects.toThrow('on a gateway of testGateway');
    await expect(expect(other).not.toHaveCalledTool('read')).rejects.toThrow('on a gateway of testGateway');
  }
});
