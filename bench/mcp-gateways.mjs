// Gateways with one small MCP server behind them, and the clients that open sessions and streams there.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { mcpUpstream } from '../test/kit/mcp-upstream.ts';
import { sseServer } from '../test/kit/sse-server.ts';
import { httpUpstream } from '../test/kit/upstream.ts';
import { freePort, gatewayBuilds, root, scratchFolder, startGateway } from './harness/processes.mjs';
import { stdioServer } from './mcp-case.mjs';

const PREFIX = 'io.modelcontextprotocol/';
const MODERN = '2026-07-28';
const LEGACY = '2025-11-25';
const ACCEPT = { accept: 'application/json, text/event-stream' };

const shared = { stdio: { cmd: process.execPath, args: [stdioServer], shared: true } };

/**
 * What can be behind the gateway. `start` starts the server and resolves to the target, a call of a tool, and a
 * function that stops the server.
 */
const SERVERS = {
  stdio: () => ({
    target: { stdio: { cmd: 'sh', args: [join(root, 'bench/peers/tiny-server.sh')] } },
    tool: { name: 'echo', arguments: { text: 'hello' } },
  }),
  shared: () => ({ target: shared, tool: { name: 'echo', arguments: { text: 'hello' } } }),
  http: async () => {
    const server = await mcpUpstream({ capabilities: { tools: { listChanged: true } } });
    return { target: { mcp: { host: server.url } }, tool: { name: 'say', arguments: {} }, server };
  },
  sse: async () => {
    const server = await sseServer();
    return {
      target: { sse: { host: server.url } },
      tool: { name: 'echo', arguments: { message: 'hello' } },
      server,
    };
  },
  openapi: async () => {
    const server = await httpUpstream();
    const paths = { '/hello': { get: { operationId: 'echo', responses: { 200: { description: 'ok' } } } } };
    const schema = { openapi: '3.1.0', info: { title: 'small', version: '1.0.0' }, paths };
    const target = { openapi: { schema: JSON.stringify(schema), host: `http://${server.address}` } };
    return { target, tool: { name: 'echo', arguments: {} }, server };
  },
};

/**
 * A gateway in front of the server of that name. Resolves to `{ url, admin, pid, inspectPort, tool, stop }`. `backend` has
 * more members of the MCP backend; sessions end after 10 s without a request.
 */
export async function startMcpGateway(name, { bin, backend = {}, nodeArgs = [] } = {}) {
  const { target, tool, server } = await SERVERS[name]();
  const [[, program]] = await gatewayBuilds(bin === undefined ? [] : [bin]);
  const [adminPort, inspectPort] = [await freePort(), await freePort()];
  const mcp = { ...backend, targets: [{ name: 'bench', ...target }] };
  const config = {
    config: {
      adminAddr: `127.0.0.1:${adminPort}`,
      statsAddr: '127.0.0.1:0',
      readinessAddr: '127.0.0.1:0',
      mcp: { sessionTtl: '10s', maxSessions: 20_000 },
    },
    gateways: {
      default: { port: 0, protocol: 'HTTP', address: '127.0.0.1', routes: [{ backends: [{ mcp }] }] },
    },
  };
  const file = join(scratchFolder(), 'gateway.yaml');
  writeFileSync(file, JSON.stringify(config));
  const gateway = await startGateway(program, file, [`--inspect=127.0.0.1:${inspectPort}`, ...nodeArgs]);
  return {
    url: `http://127.0.0.1:${gateway.port}/mcp`,
    admin: `http://127.0.0.1:${adminPort}`,
    pid: gateway.pid,
    inspectPort,
    tool,
    stop: async () => {
      await gateway.stop();
      await server?.[Symbol.asyncDispose]();
    },
  };
}

/** What the admin server reports: memory in bytes, and the number of sessions, calls and children in use. */
export async function memoryOf({ admin }) {
  const { body } = await request(`${admin}/memory`);
  const { allocation_stats: memory, bounds } = await body.json();
  const used = (name) =>
    bounds.filter((bound) => bound.name === name).reduce((sum, bound) => sum + (bound.used ?? 0), 0);
  const connections = used('connections') + used('admin.connections');
  return { ...memory, sessions: used('mcp.sessions'), children: used('mcp.children'), connections };
}

/** Clients of one gateway, with connections of their own. */
export class Clients {
  #url;
  #agent;

  constructor({ url }, connections) {
    this.#url = url;
    // Each stream keeps its connection.
    this.#agent = new Agent({ connections, pipelining: 1, bodyTimeout: 0, headersTimeout: 60_000 });
  }

  /** Sends one message, or GET or DELETE without one; rejects unless the status is 2xx. The body is not read. */
  async #send(method, message, headers) {
    const response = await request(this.#url, {
      method,
      dispatcher: this.#agent,
      headers: { ...ACCEPT, ...(message && { 'content-type': 'application/json' }), ...headers },
      ...(message && { body: JSON.stringify({ jsonrpc: '2.0', ...message }) }),
    });
    if (response.statusCode >= 200 && response.statusCode < 300) return response;
    throw new Error(`${message?.method ?? method}: ${response.statusCode} ${await response.body.text()}`);
  }

  /** Sends a request; resolves to its result. */
  async #ask(message, headers) {
    const response = await this.#send('POST', { id: 1, ...message }, headers);
    const body = await response.body.text();
    const last = body.split('\n').findLast((line) => line.startsWith('data: {'));
    const { result, error } = JSON.parse(last === undefined ? body : last.slice('data: '.length));
    if (result === undefined || result.isError)
      throw new Error(`${message.method}: ${JSON.stringify(error ?? result)}`);
    return { result, headers: response.headers };
  }

  /** Opens a session; resolves to the headers of its requests. */
  async open() {
    const clientInfo = { name: 'bench', version: '1.0.0' };
    const params = { protocolVersion: LEGACY, capabilities: {}, clientInfo };
    const { headers } = await this.#ask({ method: 'initialize', params });
    const session = headers['mcp-session-id'];
    if (session === undefined) throw new Error('initialize: no Mcp-Session-Id');
    const own = { 'mcp-session-id': session, 'mcp-protocol-version': LEGACY };
    await (await this.#send('POST', { method: 'notifications/initialized' }, own)).body.dump();
    return own;
  }

  call(params, session = {}) {
    return this.#ask({ method: 'tools/call', params }, session);
  }

  async end(session) {
    await (await this.#send('DELETE', undefined, session)).body.dump();
  }

  /** Opens the GET stream of a session. */
  async listen(session) {
    return stream(await this.#send('GET', undefined, session));
  }

  /** Calls a tool that sends a notification and does not answer. */
  async hold(session, id) {
    const params = { name: 'hold', arguments: {}, _meta: { progressToken: id } };
    return stream(await this.#send('POST', { id, method: 'tools/call', params }, session));
  }

  /** A request of revision 2026-07-28 of the caller with that token. */
  #modern(method, params, token) {
    const _meta = {
      [`${PREFIX}protocolVersion`]: MODERN,
      [`${PREFIX}clientInfo`]: { name: 'bench', version: '1.0.0' },
      [`${PREFIX}clientCapabilities`]: {},
    };
    const named = params.name === undefined ? {} : { 'mcp-name': params.name };
    const headers = {
      authorization: `Bearer ${token}`,
      'mcp-protocol-version': MODERN,
      'mcp-method': method,
      ...named,
    };
    return [{ method, params: { ...params, _meta } }, headers];
  }

  callModern(params, token) {
    return this.#ask(...this.#modern('tools/call', params, token));
  }

  /** Opens a `subscriptions/listen` stream; resolves when it is acknowledged. */
  async listenModern(token, id) {
    const [message, headers] = this.#modern(
      'subscriptions/listen',
      { notifications: { toolsListChanged: true } },
      token,
    );
    const opened = stream(await this.#send('POST', { id, ...message }, headers));
    await opened.first;
    return opened;
  }

  /** Cuts all connections. */
  async close() {
    await this.#agent.destroy();
  }
}

/** A response that is read until it ends. `first` resolves with its first bytes; `longestSilence` is in ms. */
function stream({ body }) {
  const first = Promise.withResolvers();
  const ended = new Promise((resolve) => body.once('close', resolve));
  let last = performance.now();
  let longest = 0;
  const heard = () => {
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
  };
  body
    .on('data', first.resolve)
    .on('data', heard)
    .on('error', () => undefined);
  return {
    first: first.promise,
    ended,
    leave: () => body.destroy(),
    isOpen: () => !body.closed,
    longestSilence: () => Math.max(longest, performance.now() - last),
  };
}

/** Runs `work(index)` `count` times, `concurrency` at a time; resolves to the messages of its errors. */
export async function repeat(count, concurrency, work) {
  const errors = [];
  let next = 0;
  const worker = async () => {
    while (next < count) {
      const index = next;
      next += 1;
      await work(index).catch((error) => errors.push(error.message));
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  return errors;
}
