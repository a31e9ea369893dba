import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { serveHttp } from './everything/http.ts';
import { everythingServer } from './everything/server.ts';

// `node everything-server.ts` speaks MCP on stdin and stdout until stdin ends.
// `node everything-server.ts --http PORT` speaks it on http://127.0.0.1:PORT/mcp until a signal; port 0 is any
// free one, and the URL is the first line on stdout.

const { values } = parseArgs({ options: { http: { type: 'string' } } });

if (values.http === undefined) {
  serveStdio(() => everythingServer(), { onerror: (error) => console.error(error) });
} else {
  const server = await serveHttp(Number(values.http));
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
}
