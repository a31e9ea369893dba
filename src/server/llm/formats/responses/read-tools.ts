import type { Tool } from '../../chat/chat.ts';
import type { Json } from '../../chat/chat-format.ts';
import { nameInNamespace } from '../../chat/client-tools.ts';
import { defined } from '../../chat/defined.ts';
import type { MemberReader } from '../../chat/member-reader.ts';
import { joinTexts } from '../../chat/turns.ts';

/** The function that stands for a search of the client for tools. */
export const SEARCH = 'tool_search';

/** Reads an element of `tools`: the tools in it. */
export function readTool(tool: MemberReader): Tool[] {
  // Tools that wait for a search at the provider would never be seen.
  tool.only('defer_loading', false);
  return readOffered(tool);
}

/** Reads a tool that is offered now: as in `tools`, or one that the client has found. */
function readOffered(tool: MemberReader): Tool[] {
  switch (tool.requiredChoice('type', ['function', 'custom', 'namespace', SEARCH])) {
    case 'namespace':
      return readNamespace(tool);
    case SEARCH:
      return [readSearch(tool)];
    case 'custom':
      return [readCustom(tool)];
    case 'function':
      return [readFunction(tool)];
  }
}

/** Reads an element of the `tools` of an input item. */
export function readFoundTool(tool: MemberReader): Tool[] {
  tool.flag('defer_loading');
  return readOffered(tool);
}

function readFunction(tool: MemberReader): Tool {
  tool.only('allowed_callers', ['direct']);
  tool.skip({ output_schema: 'describes the result to programs that run at the provider' });
  return defined({
    kind: 'function' as const,
    name: tool.requiredText('name'),
    description: tool.text('description'),
    parameters: tool.json('parameters'),
    strict: tool.flag('strict'),
  });
}

function readCustom(tool: MemberReader): Tool {
  tool.only('allowed_callers', ['direct']);
  return defined({
    kind: 'custom' as const,
    name: tool.requiredText('name'),
    description: tool.text('description'),
    format: tool.object('format', readFormat),
  });
}

function readFormat(format: MemberReader): Json {
  const type = format.requiredChoice('type', ['text', 'grammar']);
  if (type === 'text') return { type };
  return {
    type,
    syntax: format.requiredText('syntax'),
    definition: format.requiredText('definition'),
  };
}

/** The tools of a namespace. Its description is added to that of the first. */
function readNamespace(members: MemberReader): Tool[] {
  const namespace = members.requiredText('name');
  const description = members.text('description') ?? '';
  return members.objects('tools', (tool, index) => {
    tool.flag('defer_loading');
    const type = tool.requiredChoice('type', ['function', 'custom']);
    const read = type === 'custom' ? readCustom(tool) : readFunction(tool);
    const text = joinTexts([index === 0 ? description : '', read.description ?? '']);
    return {
      ...read,
      ...(text === '' ? {} : { description: text }),
      name: nameInNamespace(namespace, read.name),
      client: { namespace, name: read.name },
    };
  });
}

/** Only a search that the client makes; its calls and results are items of their own. */
function readSearch(tool: MemberReader): Tool {
  if (tool.text('execution') !== 'client') tool.refuse('type');
  return defined({
    kind: 'function' as const,
    name: SEARCH,
    description: tool.text('description'),
    parameters: tool.json('parameters'),
    client: { name: SEARCH, isSearch: true },
  });
}

/** Each name once: a tool may be found several times. */
export function withoutDoubles(tools: readonly Tool[]): Tool[] {
  const byName = new Map<string, Tool>();
  for (const tool of tools) if (!byName.has(tool.name)) byName.set(tool.name, tool);
  return [...byName.values()];
}
