import { redactTarget } from '../../core/credentials.ts';
import { TOOL_ERROR } from '../../core/outcome.ts';
import { byForm } from '../../core/redact.ts';
import type { Fact } from '../kernel/fact.ts';
import type { McpFields } from './request-fields.ts';

/** All facts of an MCP message, in the order of the access log. */
export const mcpFacts: readonly Fact<McpFields>[] = [
  {
    name: 'mcp.method.name',
    cel: { member: 'methodName', type: 'string', doc: 'Method of the message, such as `tools/call`.' },
    read: ({ method }) => method,
  },
  {
    name: 'mcp.target',
    column: {
      name: 'target',
      type: 'text',
      shown: 'target',
      doc: 'Name of the MCP target.',
      filter: 'target',
    },
    read: ({ target }) => target,
  },
  { name: 'mcp.resource.type', read: ({ resourceType }) => resourceType },
  { name: 'mcp.resource.uri', read: ({ resourceUri }) => resourceUri && redactTarget(resourceUri) },
  {
    name: 'gen_ai.tool.name',
    column: {
      name: 'tool',
      type: 'text',
      shown: 'tool',
      doc: 'Name of the tool or prompt, or URI of the resource.',
      filter: 'tool',
      read: ({ tool, prompt, resourceUri }) => tool ?? prompt ?? resourceUri,
    },
    read: ({ tool }) => tool,
  },
  {
    read: ({ tool, method }) => (tool !== undefined && method === 'tools/call' ? 'execute_tool' : undefined),
    attributes: ['gen_ai.operation.name'],
  },
  { name: 'gen_ai.prompt.name', read: ({ prompt }) => prompt },
  {
    name: 'mcp.session.id',
    cel: { member: 'sessionId', type: 'string', doc: 'Shortened session id, for the log only.' },
    column: {
      name: 'session',
      type: 'text',
      shown: 'session',
      doc: 'Shortened session id.',
      filter: 'session',
    },
    read: ({ sessionId }) => sessionId,
  },
  { name: 'gw.mcp.result.cut_tokens', read: ({ cutTokens }) => cutTokens },
  {
    name: 'mcp.error.code',
    attributes: ['rpc.status_code'],
    attribute: ({ errorCode }) => (errorCode === undefined ? undefined : String(errorCode)),
    read: ({ errorCode }) => errorCode,
  },
  {
    name: 'mcp.error.message',
    isText: true,
    attributes: [],
    // It may quote the URL that the server was called with.
    read: ({ errorMessage }) => errorMessage && byForm.text(errorMessage),
  },
  // A tool error has no code.
  { name: 'error.type', read: ({ isToolError }) => (isToolError ? TOOL_ERROR : undefined) },
];
