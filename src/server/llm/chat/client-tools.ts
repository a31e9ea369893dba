import type { AnswerPart, ChatRequest, ChatResponse, ClientTool, StartedPart, Tool } from './chat.ts';
import { customInput } from './custom-tools.ts';

/**
 * Tools that a client knows in another form than a provider: by another name, custom tools, and in the Responses API
 * tools in a namespace and the search for tools. For other providers they are functions; their calls are turned back for
 * the client.
 */
function toolOf(request: ChatRequest, name: string): Tool | undefined {
  return request.tools.find((tool) => (tool.providerName ?? tool.name) === name);
}

/** The function name for a tool in a namespace, as MCP clients write it: `mcp__server__tool`. */
export function nameInNamespace(namespace: string, name: string): string {
  return `${namespace}${namespace.endsWith('__') ? '' : '__'}${name}`;
}

/** The start of a call as the client knows the tool. `isCustom`: its arguments are to be turned into an input, too. */
export function restoreStart<T extends Extract<StartedPart | AnswerPart, { type: 'toolCall' }>>(
  call: T,
  request: ChatRequest,
): T & { readonly client?: ClientTool } {
  const tool = toolOf(request, call.name);
  if (tool === undefined) return call;
  return {
    ...call,
    name: tool.name,
    ...(tool.kind === 'custom' ? { isCustom: true } : {}),
    ...(tool.client === undefined ? {} : { client: tool.client }),
  };
}

/** The response with calls as the client declared the tools. */
export function restoreCalls(response: ChatResponse, request: ChatRequest): ChatResponse {
  const restore = (part: AnswerPart): AnswerPart => {
    if (part.type !== 'toolCall') return part;
    const call = restoreStart(part, request);
    const wasFunction = part.isCustom !== true && call.isCustom === true;
    return wasFunction ? { ...call, arguments: customInput(part.arguments) } : call;
  };
  return {
    ...response,
    answers: response.answers.map((answer) => ({ ...answer, parts: answer.parts.map(restore) })),
  };
}
