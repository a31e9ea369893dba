import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { assertThat, stubMcpServer, type TestGateway, testGateway } from '../src/library/testing/index.ts';
import { temporaryFolder } from './kit/folder.ts';
import { gateway } from './kit/gateway.ts';
import { startIdp } from './kit/idp.ts';
import { answering, bodyOf, completion, llmProvider } from './kit/llm-provider.ts';
import { openSession, toolCall } from './kit/mcp.ts';
import { mcpUpstream } from './kit/mcp-upstream.ts';
import { send } from './kit/send.ts';
import { httpUpstream } from './kit/upstream.ts';

const fileOf = (name: string): URL => new URL(`../examples/${name}`, import.meta.url);

/** A gateway with a file of examples/, whose variables these are. */
const example = (name: string, env: Record<string, string>): Promise<TestGateway> =>
  testGateway(fileOf(name), { env });

/** The same, with the lines of its access log. */
const loggedExample = (name: string, env: Record<string, string>) =>
  gateway(readFileSync(fileOf(name), 'utf8'), { env });

/** What `npx` runs in examples, as a program without downloads: an MCP server with three tools. */
const NPX = `#!${process.execPath}
const tools = ['echo', 'get-sum', 'get-env'].map((name) => ({ name, inputSchema: { type: 'object' } }));
const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: process.argv[3], version: '1' } }),
  'tools/list': () => ({ tools }),
  'tools/call': ({ name }) => ({ content: [{ type: 'text', text: name + ' of ' + process.argv.slice(3).join(' ') }] }),
};
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: answers[method]?.(params) ?? {} }));
});
`;

/** A folder for PATH that has only \`npx\`. */
async function folderWithNpx(): Promise<Awaited<ReturnType<typeof temporaryFolder>>> {
  const folder = await temporaryFolder();
  const path = join(folder.path, 'npx');
  writeFileSync(path, NPX);
  chmodSync(path, 0o755);
  return folder;
}

test('examples/policies.yaml answers health checks, limits and restricts tools, and protects a service', async () => {
  await using folder = await folderWithNpx();
  await using service = await httpUpstream();
  const env = { POLICIES_PORT: '0', SERVICE_ADDR: service.address, PATH: folder.path };
  await using gate = await loggedExample('policies.yaml', env);
  expect((await send(`${gate.url}/healthz`)).text).toBe('ok');
  expect((await send(`${gate.url}/mcp`, { method: 'POST' })).status).toBe(401);
  const asking = { origin: 'https://app.example.com', 'access-control-request-method': 'POST' };
  const preflight = await send(`${gate.url}/mcp`, { method: 'OPTIONS', headers: asking });
  expect(preflight.headers['access-control-allow-origin']).toBe('https://app.example.com');
  const key = { authorization: 'Bearer demo-key' };
  const session = await openSession(`${gate.url}/mcp`, key);
  const listed = await session.send({ id: 1, method: 'tools/list' });
  expect(listed.result.tools.map(({ name }: { name: string }) => name)).toEqual(['echo', 'get-sum']);
  const called = await session.send(toolCall(2, 'get-env'));
  expect(called.error).toBeDefined();
  expect((await session.send(toolCall(3, 'echo'))).result.content[0].text).toContain('echo of');
  expect((await send(`${gate.url}/api/a`, { method: 'DELETE' })).status).toBe(403);
  expect((await send(`${gate.url}/api/a`)).status).toBe(200);
  expect(service.received.map(({ headers }) => headers['x-gateway'])).toEqual(['agctl']);
  const lines = gate.accessLog.join('');
  expect(lines).toContain('team="core"');
  expect(lines).not.toMatch(/healthz|http\.version/);
});

test('examples/quickstart.yaml has the tools of three servers behind one endpoint, and a model', async () => {
  await using folder = await folderWithNpx();
  await using memory = await stubMcpServer({ search_knowledge: () => 'found' });
  const env = {
    QUICKSTART_PORT: '0',
    QUICKSTART_LLM_PORT: '0',
    QUICKSTART_DIR: '/data',
    QUICKSTART_MEMORY_URL: memory.url,
    PATH: folder.path,
  };
  await using gate = await example('quickstart.yaml', env);
  const session = await openSession(`${gate.url}/mcp`);
  const listed = await session.send({ id: 1, method: 'tools/list' });
  const names: string[] = listed.result.tools.map(({ name }: { name: string }) => name);
  expect(new Set(names.map((name) => name.replace(/_.*/, '')))).toEqual(
    new Set(['everything', 'files', 'memory']),
  );
  const called = await session.send(toolCall(2, 'files_echo'));
  expect(called.result.content[0].text).toBe('echo of @modelcontextprotocol/server-filesystem /data');
  await assertThat(gate).toHaveCalledTool('echo', 'files');
  const [, llm] = Object.values(gate.urls);
  const answer = await send(`${llm}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'any', messages: [{ role: 'user', content: 'hello' }] }),
  });
  expect(JSON.parse(answer.text).choices[0].message.content).toContain('hello');
});

test('examples/external-authorization.yaml asks the daemon who the client is, and logs it', async () => {
  const known = new Set(['127.0.0.1']);
  await using daemon = await httpUpstream(
    (_, response, { target }) => {
      const address = new URL(target, 'http://daemon').searchParams.get('addr') ?? '';
      if (!known.has(address)) return response.writeHead(404).end();
      return response.end('{"Node":{"Name":"laptop"},"UserProfile":{"LoginName":"ann@example.com"}}');
    },
    { socket: true },
  );
  await using service = await httpUpstream();
  await using gate = await loggedExample('external-authorization.yaml', {
    AUTHZ_PORT: '0',
    IDENTITY_SOCKET: daemon.address.replace('unix:', ''),
    SERVICE_ADDR: service.address,
  });
  expect((await send(`${gate.url}/`)).status).toBe(200);
  expect(daemon.received[0]).toMatchObject({ headers: { host: 'local-identityd.sock' } });
  expect(await gate.accessLine(1)).toMatchObject({ node: 'laptop', login: 'ann@example.com' });
  known.clear();
  expect((await send(`${gate.url}/`)).status).toBe(403);
  expect(service.received).toHaveLength(1);
});

test('examples/llm.yaml needs a key, limits answers, asks the guardrail, and keeps the key of the provider', async () => {
  await using provider = await llmProvider(answering(completion('Hello.')));
  let action: object = {};
  await using guardrail = await httpUpstream((_, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ action }));
  });
  await using gate = await example('llm.yaml', {
    LLM_PORT: '0',
    PROVIDER_API_KEY: 'canary-provider',
    PROVIDER_URL: `http://${provider.address}/v1`,
    GUARDRAIL_ADDR: guardrail.address,
  });
  const ask = (headers: Record<string, string>, model = 'small') =>
    send(`${gate.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ model, max_tokens: 5000, messages: [{ role: 'user', content: 'hi' }] }),
    });
  expect((await ask({})).status).toBe(401);
  await assertThat(gate).toBeDeniedBy('apiKey');
  const key = { authorization: 'Bearer demo-key' };
  expect((await ask(key)).status).toBe(200);
  expect(bodyOf(provider)).toMatchObject({ max_tokens: 1000 });
  expect(provider.received[0]?.headers.authorization).toBe('Bearer canary-provider');
  expect(guardrail.received.map(({ target }) => target)).toEqual(['/v1/check']);
  action = { body: 'not allowed here', status_code: 403, reason: 'no' };
  expect((await ask(key)).status).toBe(403);
  await assertThat(gate).toBeDeniedBy('guardrails');
  expect(provider.received).toHaveLength(1);
  expect((await ask(key, 'echo')).text).toContain('hi');
  await gate.idle();
  expect(gate.requests[1]?.costUsd).toBeGreaterThan(0);
});

test('examples/memory-namespaces.yaml names the namespace of the caller, whatever the client sends', async () => {
  await using idp = await startIdp();
  await using memory = await mcpUpstream();
  await using gate = await example('memory-namespaces.yaml', {
    GATEWAY_PORT: '0',
    ISSUER: idp.issuer,
    RESOURCE: 'http://127.0.0.1/mcp',
    MEMORY_ADAPTER_KEY: 'key-of-the-adapter',
    MEMORY_ADAPTER_URL: memory.url,
  });
  expect((await send(`${gate.url}/mcp`, { method: 'POST' })).status).toBe(401);
  const session = await openSession(`${gate.url}/mcp`, {
    authorization: `Bearer ${idp.token({ sub: 'ann' })}`,
    'x-memory-namespace': 'bob',
  });
  await session.send({ id: 1, method: 'tools/list' });
  const { headers } = memory.of('tools/list')[0] ?? { headers: {} };
  expect(headers['x-memory-namespace']).toBe('ann');
  expect(headers['authorization']).toBe('Bearer key-of-the-adapter');
});
