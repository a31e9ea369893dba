import { describeServed } from '../served.ts';

const python = process.env['MCP_PYTHON'] as string;
const script = new URL('server.py', import.meta.url).pathname;

for (const library of ['mcp', 'fastmcp'])
  for (const transport of ['stdio', 'http'] as const)
    describeServed(`a ${transport} server of ${library}`, {
      program: [python, script, library, transport],
      transport,
      // FastMCP has no subscriptions to resources.
      ...(library === 'fastmcp' && { lacks: { '2025-11-25': ['subscribe'], '2026-07-28': ['subscribe'] } }),
    });
