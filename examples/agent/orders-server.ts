// An MCP server with the orders of a shop, over stdio.
import { McpServer } from '@modelcontextprotocol/server';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const ORDERS = new Map([
  ['A-17', { state: 'on its way', arrives: 'Thursday' }],
  ['A-18', { state: 'in our warehouse', arrives: 'next week' }],
]);

const server = new McpServer({ name: 'orders', version: '1.0.0' });
const text = (value: unknown) => ({ content: [{ type: 'text' as const, text: JSON.stringify(value) }] });

server.registerTool(
  'find_order',
  { description: 'State of an order, by its number', inputSchema: z.object({ number: z.string() }) },
  ({ number }) => text(ORDERS.get(number) ?? { state: 'unknown' }),
);
server.registerTool(
  'cancel_order',
  { description: 'Cancels an order, by its number', inputSchema: z.object({ number: z.string() }) },
  ({ number }) => text({ cancelled: ORDERS.delete(number) }),
);
await server.connect(new StdioServerTransport());
