import type { Declaration } from '../expressions/cel/declarations.ts';
import { toCel } from '../expressions/cel/values.ts';
import { type DocumentedScope, NOT_CALLED, NOT_ENDED, REQUEST_ROOTS } from '../expressions/scopes.ts';
import { defined, defineVariable, memberDeclarations, memberValues } from '../expressions/variable.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { mcpFacts } from './facts.ts';
import { mcpFields } from './request-fields.ts';

/** A tool, prompt or resource of an MCP target. */
const ITEM = {
  name: { type: 'string', doc: 'Name at the target; for a resource, its URI.' },
  target: { type: 'string', doc: 'Name of the target.' },
} as const;

/** Members of a called tool. Results are kept for the log only, if an expression reads them. */
const CALLED = {
  arguments: {
    type: 'map',
    doc: 'Arguments of the call, `{}` if there are none. Absent in rules while tools are listed.',
  },
  result: { type: 'any', doc: 'Result of the call, for the log only. Absent if it is too long.' },
  error: { type: 'map', doc: '`code` and `message` of the JSON-RPC error of the call, for the log only.' },
} as const;

const MCP: Declaration = {
  type: 'map',
  doc: 'The MCP message. In rules, one of `tool`, `prompt`, `resource` and `task` is set: the item to decide on.',
  members: {
    ...memberDeclarations(mcpFacts),
    tool: { type: 'map', doc: 'The tool.', members: { ...ITEM, ...CALLED } },
    prompt: { type: 'map', doc: 'The prompt.', members: ITEM },
    resource: { type: 'map', doc: 'The resource or resource template.', members: ITEM },
    task: { type: 'map', doc: 'The task; `name` is its id.', members: ITEM },
  },
};

export const mcpVariable = defineVariable('mcp', MCP, (ctx) => toCel(mcpMembers(ctx)));

function mcpMembers(ctx: RequestContext): object | null {
  const mcp = mcpFields.get(ctx);
  if (mcp === undefined) return null;
  const { target, tool, prompt, resourceUri, task } = mcp;
  const item = (name: string | undefined): { name: string; target: string | undefined } | undefined =>
    name === undefined ? undefined : { name, target };
  const called = { arguments: mcp.toolArguments, result: mcp.toolResult, error: mcp.toolError };
  return defined({
    ...memberValues(mcpFacts, mcp),
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
  unavailable: {
    ...NOT_ENDED,
    ...NOT_CALLED,
    'mcp.sessionId': 'it is set for the log only',
    'mcp.tool.result': 'the tool has not been called',
    'mcp.tool.error': 'the tool has not been called',
  },
  doc: 'Evaluated for each tool, prompt or resource that is listed or used.',
  keys: ['policies.mcpAuthorization.rules'],
};
