// A minimal MCP server over stdio, so that the gateway dominates the measurement. The argument is its number of tools: `echo`
// and others of the same kind.
import { createInterface } from 'node:readline';

const inputSchema = { type: 'object', properties: { text: { type: 'string' } } };
const tools = [{ name: 'echo', inputSchema: { type: 'object' } }];
for (let number = 1; number < Number(process.argv[2] ?? 1); number += 1)
  tools.push({ name: `echo-${number}`, description: `Echoes the text, number ${number}.`, inputSchema });

const REPLIES = {
  initialize: () => ({
    protocolVersion: '2025-06-18',
    capabilities: { tools: {} },
    serverInfo: { name: 'bench', version: '1.0.0' },
  }),
  ping: () => ({}),
  'tools/list': () => ({ tools }),
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
