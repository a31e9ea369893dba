// Requests of `bench mcp`: one session, and one call that all connections repeat in it.
import { join } from 'node:path';
import { OWN_PORTS } from './harness/own-ports.mjs';
import { root } from './harness/processes.mjs';

export const stdioServer = join(root, 'bench/peers/stdio-server.mjs');

const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
const CALL = {
  jsonrpc: '2.0',
  id: '[<id>]',
  method: 'tools/call',
  params: { name: 'echo', arguments: { text: 'hello' } },
};

/** A gateway with one stdio target. */
export function mcpConfig(stdio = { cmd: process.execPath, args: [stdioServer] }) {
  const target = { name: 'bench', stdio };
  return {
    config: OWN_PORTS,
    gateways: {
      default: {
        port: 0,
        protocol: 'HTTP',
        address: '127.0.0.1',
        routes: [{ name: 'mcp', backends: [{ mcp: { targets: [target] } }] }],
      },
    },
  };
}

/** Starts a session; resolves to the URL and headers for its requests. */
export async function openSession(name, port, path) {
  const url = `http://127.0.0.1:${port}${path}`;
  const clientInfo = { name: 'bench', version: '1.0.0' };
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo };
  const post = (message, headers) =>
    fetch(url, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', ...message }) });
  const opened = await post({ id: 0, method: 'initialize', params }, HEADERS);
  const text = await opened.text();
  const session = opened.headers.get('mcp-session-id');
  if (session === null) throw new Error(`${name}: initialize gave ${opened.status} ${text}`);
  const headers = { ...HEADERS, 'mcp-session-id': session, 'mcp-protocol-version': '2025-06-18' };
  await (await post({ method: 'notifications/initialized' }, headers)).text();
  return { url, headers };
}

/** The same call in revision 2026-07-28, which has no session. */
export function modernRequest(port, connections = 16) {
  const version = '2026-07-28';
  const prefix = 'io.modelcontextprotocol/';
  const meta = { [`${prefix}protocolVersion`]: version, [`${prefix}clientCapabilities`]: {} };
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    headers: {
      ...HEADERS,
      'mcp-protocol-version': version,
      'mcp-method': CALL.method,
      'mcp-name': CALL.params.name,
    },
    method: 'POST',
    body: JSON.stringify({ ...CALL, params: { ...CALL.params, _meta: meta } }),
    connections,
    mustContain: '"result"',
    uniqueIds: true,
  };
}

/** The call as the generator sends it; a response without a result counts as failed. */
export function mcpRequest({ url, headers }, connections = 16) {
  const checks = { mustContain: '"result"', uniqueIds: true };
  return { url, headers, method: 'POST', body: JSON.stringify(CALL), connections, ...checks };
}
