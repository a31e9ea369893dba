import { type CallToolResult, McpServer } from '@modelcontextprotocol/server';
import type { Log } from '../core/log.ts';
import { VERSION } from '../core/version.ts';
import type { Backend } from './backend/backend.ts';
import { BackendFailure, unexpectedReply } from './backend/failure.ts';
import { convertOnce } from './convert-once.ts';
import type { Tool, ToolContext } from './tool.ts';
import { tools } from './tools/index.ts';

export interface McpServerParts {
  readonly backend: Backend;
  readonly agentId: string;
  readonly log: Log;
  /** Where people look at what is stored. */
  readonly website?: string | undefined;
  /** Aborted when whoever asked has gone. */
  readonly gone?: AbortSignal | undefined;
}

const INSTRUCTIONS =
  'Long-term memory. Look things up with search_knowledge before answering from memory of your own; follow connections with ' +
  'query_graph; keep conversation turns with store_episodic and documents with ingest_document.';

const registered = tools.map((tool) => ({
  tool,
  inputSchema: convertOnce(tool.input),
  outputSchema: convertOnce(tool.output),
}));

/** One MCP server with the four tools, for one request over HTTP or one connection over stdio. */
export function createMemoryServer({ backend, agentId, log, gone, website }: McpServerParts): McpServer {
  const server = new McpServer(
    {
      name: 'agctl-memory',
      title: 'Memory',
      version: VERSION,
      ...(website === undefined ? {} : { websiteUrl: website }),
    },
    { instructions: INSTRUCTIONS, capabilities: { tools: {} } },
  );
  for (const { tool, inputSchema, outputSchema } of registered) {
    const { name, title, description, readOnly, idempotent } = tool;
    server.registerTool(
      name,
      {
        title,
        description,
        inputSchema,
        outputSchema,
        annotations: {
          title,
          readOnlyHint: readOnly,
          destructiveHint: false,
          idempotentHint: idempotent,
          openWorldHint: false,
        },
      },
      (args, { mcpReq }) => {
        const signal = gone === undefined ? mcpReq.signal : AbortSignal.any([mcpReq.signal, gone]);
        return call(tool, args as never, { backend, agentId, signal }, log);
      },
    );
  }
  return server;
}

async function call(tool: Tool, args: never, context: ToolContext, log: Log): Promise<CallToolResult> {
  try {
    const reply = tool.output.safeParse(await tool.run(args, context));
    if (!reply.success) throw unexpectedReply(tool.readOnly ? undefined : { repeatable: tool.idempotent });
    const result = tool.shorten?.(reply.data as never) ?? reply.data;
    return {
      structuredContent: result,
      // The same for clients that know no structured content (MCP 2025-06-18, "Structured Content": SHOULD).
      content: [{ type: 'text', text: JSON.stringify(result) }],
    };
  } catch (error) {
    if (!(error instanceof BackendFailure)) throw error;
    log.warn('memory::adapter', 'tool failed', { tool: tool.name, problem: error.message });
    return { isError: true, content: [{ type: 'text', text: error.message }] };
  }
}
