import { createMcpHandler, fromJsonSchema, McpServer } from '@modelcontextprotocol/server';
import { listen } from '../local-server.ts';

/** A tool of a stub server. */
export interface StubTool {
  readonly description?: string;
  /** JSON Schema of its arguments; any object by default. */
  readonly inputSchema?: Readonly<Record<string, unknown>>;
  readonly annotations?: {
    readonly readOnlyHint?: boolean;
    readonly destructiveHint?: boolean;
    readonly idempotentHint?: boolean;
    readonly openWorldHint?: boolean;
  };
  /** Returns its text, or an object, which is also the structured content. What it throws is an error of the tool. */
  run(args: Readonly<Record<string, unknown>>): unknown;
}

/** A call that a stub server got. */
export interface StubToolCall {
  readonly tool: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** An MCP server over HTTP in the process of the test, for clients of both generations of the protocol. */
export interface StubMcpServer extends AsyncDisposable {
  /** Address of its endpoint. */
  readonly url: string;
  /** The calls that it got, in this order. */
  readonly calls: readonly StubToolCall[];
  /** An entry of `mcp.targets` that leads to it. */
  target(name: string): { readonly name: string; readonly mcp: { readonly host: string } };
  close(): Promise<void>;
}

/** Starts an MCP server with these tools, by name. A function is the `run` of a tool without description. */
export async function stubMcpServer(
  tools: Readonly<Record<string, StubTool | StubTool['run']>>,
): Promise<StubMcpServer> {
  const calls: StubToolCall[] = [];
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'stub', version: '1' }, { capabilities: { tools: {} } });
    for (const [name, tool] of Object.entries(tools)) register(server, name, tool, calls);
    return server;
  });
  const { origin, close } = await listen((request) => handler.fetch(request));
  const url = `${origin}/mcp`;
  const end = async (): Promise<void> => {
    await handler.close();
    await close();
  };
  return {
    url,
    calls,
    target: (name) => ({ name, mcp: { host: url } }),
    close: end,
    [Symbol.asyncDispose]: end,
  };
}

const ANY_OBJECT = { type: 'object' };

function register(
  server: McpServer,
  name: string,
  tool: StubTool | StubTool['run'],
  calls: StubToolCall[],
): void {
  const {
    run,
    description,
    annotations,
    inputSchema = ANY_OBJECT,
  }: StubTool = typeof tool === 'function' ? { run: tool } : tool;
  const settings = {
    inputSchema: fromJsonSchema<Record<string, unknown>>(inputSchema),
    ...(description !== undefined && { description }),
    ...(annotations !== undefined && { annotations }),
  };
  server.registerTool(name, settings, async (args) => {
    calls.push({ tool: name, arguments: args });
    const result = await run(args);
    const isObject = typeof result === 'object' && result !== null;
    const text = typeof result === 'string' ? result : (JSON.stringify(result) ?? '');
    return {
      content: [{ type: 'text', text }],
      ...(isObject && !Array.isArray(result) && { structuredContent: { ...result } }),
    };
  });
}
