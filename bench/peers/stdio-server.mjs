// A minimal MCP server over stdio, so that the gateway dominates the measurement.
import { createInterface } from 'node:readline';

const REPLIES = {
  initialize: () => ({
    protocolVersion: '2025-06-18',
    capabilities: { tools: {} },
    serverInfo: { name: 'bench', version: '1.0.0' },
  }),
  ping: () => ({}),
  'tools/list': () => ({ tools: [{ name: 'echo', inputSchema: { type: 'object' } }] }),
  'tools/call': ({ arguments: { text } }) => ({ content: [{ type: 'text', text }] }),
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  if (params?.name === 'hold') {
    // Opens the response stream of a call that never ends.
    const progress = { progressToken: params._meta.progressToken, progress: 1 };
    const message = { jsonrpc: '2.0', method: 'notifications/progress', params: progress };
    process.stdout.write(`${JSON.stringify(message)}\n`);
    return;
  }
  const reply = REPLIES[method];
  const answer = reply ? { result: reply(params) } : { error: { code: -32601, message: 'method not found' } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...answer })}\n`);
});
