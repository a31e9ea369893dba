import type { Declaration } from '../expressions/cel/declarations.ts';
import { toCel } from '../expressions/cel/values.ts';
import { type DocumentedScope, NOT_CALLED, NOT_ENDED, REQUEST_ROOTS } from '../expressions/scopes.ts';
import { defined, defineVariable, type Members } from '../expressions/variable.ts';
import type { RequestContext } from '../kernel/request-context.ts';
import { mcpFields } from './request-fields.ts';

/** A tool, prompt or resource of an MCP target. */
const ITEM = {
  name: { type: 'string', doc: 'Its name as the target itself calls it; the URI of a resource.' },
  target: { type: 'string', doc: 'Name of the target that it belongs to.' },
} as const;

/** Of a tool that is called. What it gave is kept for the log only, and only where an expression reads it. */
const CALLED = {
  arguments: {
    type: 'map',
    doc: 'What it is called with, `{}` for nothing. Absent in rules while tools are listed.',
  },
  result: { type: 'any', doc: 'What it gave, unless that is too long to be kept: only in the log.' },
  error: { type: 'map', doc: '`code` and `message` of the JSON-RPC error of the call: only in the log.' },
} as const;

const MCP = {
  type: 'map',
  doc: 'The MCP message. Rules see one of `tool`, `prompt`, `resource` and `task`: the item in question.',
  members: {
    methodName: { type: 'string', doc: 'Method of the message, such as `tools/call`.' },
    sessionId: { type: 'string', doc: "The session's id, shortened: only in the log." },
    tool: { type: 'map', doc: 'The tool.', members: { ...ITEM, ...CALLED } },
    prompt: { type: 'map', doc: 'The prompt.', members: ITEM },
    resource: { type: 'map', doc: 'The resource, or the template of resources.', members: ITEM },
    task: { type: 'map', doc: 'The task; its name is its id.', members: ITEM },
  },
} as const satisfies Declaration;

export const mcpVariable = defineVariable('mcp', MCP, (ctx) => toCel(mcpMembers(ctx)));

function mcpMembers(ctx: RequestContext): object | null {
  const mcp = mcpFields.get(ctx);
  if (mcp === undefined) return null;
  const { method, sessionId, target, tool, prompt, resourceUri, task } = mcp;
  const item = (name: string | undefined): { name: string; target: string | undefined } | undefined =>
    name === undefined ? undefined : { name, target };
  const called = { arguments: mcp.toolArguments, result: mcp.toolResult, error: mcp.toolError };
  return defined<Members<typeof MCP>>({
    methodName: method,
    sessionId,
    tool: tool === undefined ? undefined : defined({ ...item(tool), ...called }),
    prompt: item(prompt),
    resource: item(resourceUri),
    task: item(task),
  });
}

/** Rules on single items of MCP servers. */
export const mcpAuthorizationScope: DocumentedScope = {
  name: 'mcpAuthorization',
  roots: [...REQUEST_ROOTS, 'mcp'],
  unset: {
    ...NOT_ENDED,
    ...NOT_CALLED,
    'mcp.sessionId': 'it is for the log',
    'mcp.tool.result': 'the tool has not been called',
    'mcp.tool.error': 'the tool has not been called',
  },
  doc: 'For each tool, prompt or resource that is listed or used.',
  keys: ['policies.mcpAuthorization.rules'],
};
