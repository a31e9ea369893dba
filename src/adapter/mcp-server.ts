import { type CallToolResult, McpServer, type StandardSchemaWithJSON } from '@modelcontextprotocol/server';
import type { z } from 'zod';
import type { Log } from '../core/log.ts';
import { VERSION } from '../core/version.ts';
import type { Backend } from './backend/backend.ts';
import { BackendError, unexpectedReply } from './backend/backend-error.ts';
import type { SearchKind, Tool, ToolContext } from './tool.ts';
import { extendedTools, type ToolSet, tools } from './tools/index.ts';
import { oneLine } from './tools/stored-text.ts';

export interface McpServerParts {
  readonly backend: Backend;
  readonly agentId: string;
  readonly log: Log;
  /** Default: `unknown`. */
  readonly searchKind?: SearchKind | undefined;
  /** Default: `default`. */
  readonly toolSet?: ToolSet | undefined;
  /** URL of the dashboard. */
  readonly website?: string | undefined;
  /** Aborted when the caller has disconnected. */
  readonly gone?: AbortSignal | undefined;
}

const INSTRUCTIONS =
  'Long-term memory. Search with search_knowledge before answering from your own memory; follow connections with ' +
  'query_graph; store conversation turns with store_episodic and documents with ingest_document.';

const EXTENDED_INSTRUCTIONS =
  `${INSTRUCTIONS} Facts about people, projects and other things belong to entities: look with search_nodes first, create ` +
  'them with create_entities, and connect them with create_relations. search_episodes finds earlier conversations.';

const registered = [...tools, ...extendedTools].map((tool) => ({
  tool,
  inputSchema: convertOnce(tool.input),
  outputSchema: convertOnce(tool.output),
}));

/** Creates an MCP server with the tools, for one request over HTTP or one connection over stdio. */
export function createMemoryServer(parts: McpServerParts): McpServer {
  const { backend, agentId, log, gone, website, toolSet = 'default', searchKind = 'unknown' } = parts;
  const server = new McpServer(
    {
      name: 'agctl-memory',
      title: 'Memory',
      version: VERSION,
      ...(website === undefined ? {} : { websiteUrl: website }),
    },
    {
      instructions: toolSet === 'extended' ? EXTENDED_INSTRUCTIONS : INSTRUCTIONS,
      capabilities: { tools: {} },
    },
  );
  for (const { tool, inputSchema, outputSchema } of toolSet === 'extended'
    ? registered
    : registered.slice(0, tools.length)) {
    const { name, title, description, readOnly, idempotent, destructive = false } = tool;
    server.registerTool(
      name,
      {
        title,
        description: typeof description === 'string' ? description : description(searchKind),
        inputSchema,
        outputSchema,
        annotations: {
          title,
          readOnlyHint: readOnly,
          destructiveHint: destructive,
          idempotentHint: idempotent,
          openWorldHint: false,
        },
      },
      (args, { mcpReq }) => {
        const signal = gone === undefined ? mcpReq.signal : AbortSignal.any([mcpReq.signal, gone]);
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the SDK has checked them by the tool's input schema
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
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked by the tool's output schema
    const result = tool.shorten?.(reply.data as never, args) ?? reply.data;
    return {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked by the tool's output schema
      structuredContent: tool.structured?.(result as never, args) ?? result,
      // For clients without support for structured content (MCP 2025-06-18, "Structured Content"), without a second copy of it
      // for those that give a model both (docs/decisions/0082).
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked by the tool's output schema
      content: [{ type: 'text', text: tool.text?.(result as never, args) ?? JSON.stringify(result) }],
    };
  } catch (error) {
    if (!(error instanceof BackendError)) throw error;
    const { message: problem, help } = error;
    log.warn('memory::adapter', 'tool failed', {
      tool: tool.name,
      problem,
      ...(help === undefined ? {} : { help }),
    });
    return { isError: true, content: [{ type: 'text', text: oneLine(error.message) }] };
  }
}

type Direction = 'input' | 'output';

/**
 * Caches the JSON Schema of a schema. The SDK requests it for every server, which here means for every request;
 * converting it each time was most of the time of `tools/list`.
 */
function convertOnce(schema: z.ZodObject): StandardSchemaWithJSON {
  const standard = schema['~standard'] as StandardSchemaWithJSON['~standard'];
  const made = new Map<Direction, Record<string, unknown>>();
  const make =
    (direction: Direction) =>
    (options: { readonly target: never }): Record<string, unknown> => {
      const known = made.get(direction);
      if (known !== undefined) return known;
      const converted = standard.jsonSchema[direction](options);
      made.set(direction, converted);
      return converted;
    };
  const cached = { ...standard, jsonSchema: { input: make('input'), output: make('output') } };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the type of the options is the SDK's own
  return { '~standard': cached } as never;
}
