import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { type Eras, serveHttp } from './everything/http.ts';
import { everythingServer } from './everything/server.ts';

// `node everything-server.ts` speaks MCP on stdin and stdout until stdin ends.
// `node everything-server.ts --http PORT` speaks it on http://127.0.0.1:PORT/mcp until a signal; port 0 is any
// free one, and the URL is the first line on stdout. `--eras legacy` leaves out revision 2026-07-28, `--eras modern` all others.

const { values } = parseArgs({ options: { http: { type: 'string' }, eras: { type: 'string' } } });
const eras = (values.eras ?? 'both') as Eras;

if (values.http !== undefined) {
  const server = await serveHttp(Number(values.http), eras);
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
} else if (eras === 'legacy') {
  await everythingServer().connect(new StdioServerTransport());
} else {
  const onerror = (error: Error) => console.error(error);
  serveStdio(() => everythingServer(), { onerror, legacy: eras === 'modern' ? 'reject' : 'serve' });
}
