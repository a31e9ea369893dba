// Lists the tools of an MCP endpoint and calls some, using only Node's fetch:
//   node examples/call-tool.mjs http://127.0.0.1:3000/mcp [tool] [arguments as JSON]
// Exits with 1 if a call fails. The variable API_KEY has the key, where the gateway asks for one.
import { relative } from 'node:path';
import { setTimeout } from 'node:timers/promises';

const [url = 'http://127.0.0.1:3000/mcp', tool, argumentsJson = '{}'] = process.argv.slice(2);
const authorization =
  process.env.API_KEY === undefined ? {} : { authorization: `Bearer ${process.env.API_KEY}` };
let session;
let id = 0;

async function send(message) {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...authorization,
      ...(session === undefined ? {} : { 'mcp-session-id': session }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', ...message }),
  });
  const text = await response.text();
  const hint = response.status === 401 ? ' (set API_KEY to a key of the gateway)' : '';
  if (!response.ok) throw new Error(`HTTP ${response.status}: ${text}${hint}`);
  session ??= response.headers.get('mcp-session-id') ?? undefined;
  const messages = [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data));
  const answer = messages.find((candidate) => candidate.id === message.id);
  if (answer?.error) throw new Error(answer.error.message);
  return answer?.result;
}

const request = (method, params = {}) => send({ id: ++id, method, params });

process.on('uncaughtException', ({ message, cause }) => {
  const reason =
    cause?.code === 'ECONNREFUSED'
      ? `nothing listens at ${new URL(url).host}: start a gateway there (npm start in a checkout, or agctl serve)`
      : cause === undefined
        ? message
        : `cannot call ${url}: ${cause.message}`;
  console.error(`error: ${reason}`);
  process.exit(1);
});

/** A value that a JSON Schema allows, with required properties only. */
function example({ type, enum: values, default: usual, properties = {}, required = [] } = {}) {
  const value = usual ?? values?.[0];
  if (value !== undefined) return value;
  const scalars = { string: 'text', number: 1, integer: 1, boolean: true, array: [] };
  const kind = [type].flat()[0];
  if (kind in scalars) return scalars[kind];
  return Object.fromEntries(required.map((key) => [key, example(properties[key])]));
}

const { serverInfo } = await request('initialize', {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 'call-tool', version: '1' },
});
await send({ method: 'notifications/initialized' });
console.log(`connected to ${serverInfo.name} ${serverInfo.version}`);
/** The list of tools. A slow server joins it later, in the same session: it is waited for, a minute at most. */
async function list(deadline = Date.now() + 60_000) {
  const { tools, _meta } = await request('tools/list');
  const missing = _meta?.['agctl/unavailableTargets'] ?? [];
  const isStarting = missing.some(({ error }) => error.startsWith('still starting'));
  if (!isStarting || Date.now() > deadline) return { tools, missing };
  await setTimeout(250);
  return list(deadline);
}
const { tools, missing } = await list();
console.log(`${tools.length} tools: ${tools.map(({ name }) => name).join(', ')}`);
for (const { name, error } of missing) console.log(`not in the list: ${name} (${error})`);
const samples = [
  ['everything_echo', { message: 'hello through the gateway' }],
  ['files_list_allowed_directories', {}],
  ['memory_search_knowledge', { query: 'what can the gateway do?', limit: 1 }],
].filter(([name]) => tools.some((known) => known.name === name));
const calls = tool === undefined ? samples : [[tool, JSON.parse(argumentsJson)]];
if (calls.length === 0 && tools.length > 0) {
  const [{ name, inputSchema }] = tools;
  console.log(
    `To call one: node ${relative('.', import.meta.filename)} ${url} ${name} '${JSON.stringify(example(inputSchema))}'`,
  );
}
for (const [name, args] of calls) {
  const { content, isError } = await request('tools/call', { name, arguments: args });
  const text = content.map((part) => part.text ?? `(${part.type})`).join(' ');
  if (!isError) console.log(`${name} -> ${text}`);
  else {
    console.error(`${name} failed: ${text}`);
    process.exitCode = 1;
  }
}
await fetch(url, { method: 'DELETE', headers: { ...authorization, 'mcp-session-id': session } });
