// node bench/mcp-session-churn.mjs [--target stdio|shared|http] [--sessions 1000] [--concurrency 16] [--bin PATH]
// Opens sessions on a gateway with one target, opens a GET stream and calls one tool in each, and deletes them. Then counts
// what the gateway still holds. Exits with code 1 if a call failed, or if a child process or a file descriptor is left.
// `shared`: one child process for all sessions (stdio.shared).

import { randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Pool } from 'undici';
import { startHttpGateway, startStdioGateway } from '../test/conformance/targets.ts';

// The access log and the event loop may each hold a descriptor more or less at the time of counting.
const fdTolerance = 2;
const quietTimeoutMs = 10_000;
const protocolVersion = '2025-11-25';

const { values } = parseArgs({
  options: {
    target: { type: 'string', default: 'stdio' },
    sessions: { type: 'string', default: '1000' },
    concurrency: { type: 'string', default: '16' },
    bin: { type: 'string' },
  },
});
const TARGETS = {
  stdio: (env) => startStdioGateway(values.bin, env),
  shared: (env) => startStdioGateway(values.bin, env, { shared: true }),
  http: () => startHttpGateway(values.bin),
};
const startGateway = TARGETS[values.target];
if (startGateway === undefined) throw new Error(`--target must be one of ${Object.keys(TARGETS).join(', ')}`);
const total = Number(values.sessions);
const concurrency = Number(values.concurrency);
// A child whose parent died belongs to init, so parentage alone does not find every leak; this variable does.
const mark = `AGCTL_CHURN=${randomUUID()}`;

/** The response to a JSON-RPC request, whether it came as JSON or at the end of an event stream. */
async function rpc(pool, session, method, params) {
  const { statusCode, headers, body } = await send(pool, session, { jsonrpc: '2.0', id: 1, method, params });
  const text = await body.text();
  if (statusCode !== 200) throw new Error(`${method}: ${statusCode} ${text}`);
  const frames = text.split('\n').filter((line) => line.startsWith('data: {'));
  const reply = JSON.parse(frames.length > 0 ? frames.at(-1).slice('data: '.length) : text);
  if (reply.result === undefined) throw new Error(`${method}: ${JSON.stringify(reply.error)}`);
  return { result: reply.result, session: headers['mcp-session-id'] };
}

function send(pool, session, message) {
  const headers = { accept: 'application/json, text/event-stream' };
  if (session !== undefined)
    Object.assign(headers, { 'mcp-session-id': session, 'mcp-protocol-version': protocolVersion });
  if (message === undefined) return pool.request({ path: '/mcp', method: 'DELETE', headers });
  headers['content-type'] = 'application/json';
  return pool.request({ path: '/mcp', method: 'POST', headers, body: JSON.stringify(message) });
}

async function expectSuccess(what, response) {
  const { statusCode, body } = await response;
  const text = await body.text();
  if (statusCode < 200 || statusCode > 299) throw new Error(`${what}: ${statusCode} ${text}`);
}

async function oneSession(pool, streams) {
  const clientInfo = { name: 'churn', version: '1.0.0' };
  const { session } = await rpc(pool, undefined, 'initialize', {
    protocolVersion,
    capabilities: {},
    clientInfo,
  });
  if (session === undefined) throw new Error('initialize: no Mcp-Session-Id');
  const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' };
  await expectSuccess('initialized', send(pool, session, initialized));
  const stream = await streams.request({
    path: '/mcp',
    method: 'GET',
    headers: { accept: 'text/event-stream', 'mcp-session-id': session },
  });
  if (stream.statusCode !== 200) throw new Error(`GET: ${stream.statusCode}`);
  const ended = stream.body.dump();
  const { result } = await rpc(pool, session, 'tools/call', { name: 'test_simple_text', arguments: {} });
  if (result.isError || result.content?.[0]?.type !== 'text')
    throw new Error(`tools/call: ${JSON.stringify(result)}`);
  await expectSuccess('DELETE', send(pool, session, undefined));
  await ended;
}

/** Runs `count` sessions, `concurrency` at a time; resolves to the errors. */
async function churn(origin, count) {
  const [pool, streams] = [1, 2].map(() => new Pool(origin, { connections: concurrency }));
  const errors = [];
  let started = 0;
  const worker = async () => {
    while (started < count) {
      started += 1;
      if (started % Math.ceil(count / 10) === 0 && count > concurrency) console.error(`${started}/${count}`);
      await oneSession(pool, streams).catch((error) => errors.push(error.message));
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  await Promise.all([pool.destroy(), streams.destroy()]);
  return errors;
}

/** Processes that the gateway started, directly or through one of them, by id. */
async function descendants(gatewayPid) {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && Number(name) !== gatewayPid);
  const found = await Promise.all(
    pids.map(async (pid) => {
      // A process may end between listing and reading, and a foreign one may be unreadable.
      const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
      const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
      return environment.includes(mark) || new RegExp(`^PPid:\\t${gatewayPid}$`, 'm').test(status);
    }),
  );
  return pids.filter((_pid, index) => found[index]);
}

async function holdings(pid) {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return {
    children: (await descendants(pid)).length,
    fds: (await readdir(`/proc/${pid}/fd`)).length,
    rssMiB: Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024),
  };
}

/** What the gateway holds once `done` returns true, or 10 s later. */
async function waitUntilQuiet(pid, done) {
  const deadline = performance.now() + quietTimeoutMs;
  for (;;) {
    const held = await holdings(pid);
    if (done(held) || performance.now() > deadline) return held;
    await delay(100);
  }
}

/** Returns true once the counts have not changed for a second: closed sockets and children are gone by then. */
function steady() {
  let last = '';
  let times = 0;
  return ({ children, fds }) => {
    const now = `${children} ${fds}`;
    times = now === last ? times + 1 : 0;
    last = now;
    return times >= 10;
  };
}

const [name, value] = mark.split('=');
const gateway = await startGateway({ [name]: value });
try {
  const { origin } = new URL(gateway.url);
  // Code and pools that are initialized once must not count as a leak.
  await churn(origin, concurrency);
  const before = await waitUntilQuiet(gateway.pid, steady());
  const start = performance.now();
  const errors = await churn(origin, total);
  const seconds = (performance.now() - start) / 1000;
  const isClean = ({ children, fds }) => children === 0 && fds <= before.fds + fdTolerance;
  const after = await waitUntilQuiet(gateway.pid, isClean);

  console.log(`target: ${values.target}`);
  console.log(`sessions: ${total}, ${concurrency} at a time, ${(total / seconds).toFixed(1)}/s`);
  console.log(`errors: ${errors.length}${errors.length > 0 ? ` (first: ${errors[0]})` : ''}`);
  console.log(`seconds: ${seconds.toFixed(1)}`);
  console.log(`children left: ${after.children}`);
  console.log(`fds: ${before.fds} before, ${after.fds} after`);
  console.log(`rss: ${before.rssMiB} MiB before, ${after.rssMiB} MiB after`);
  process.exitCode = errors.length === 0 && isClean(after) ? 0 : 1;
} finally {
  await gateway.stop();
}
