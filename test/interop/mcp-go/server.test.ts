import { describeServed } from '../served.ts';

const program = process.env['MCP_GO'] as string;

// It sends no updates of resources on the streams of `subscriptions/listen`.
const lacks = { '2026-07-28': ['subscribe'] } as const;

describeServed('a stdio server of mcp-go', { program: [program, 'stdio'], transport: 'stdio', lacks });
describeServed('an HTTP server of mcp-go', { program: [program, 'http'], transport: 'http', lacks });
