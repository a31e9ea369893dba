import { createHash } from 'node:crypto';
import type { ChatRequest, Part, ToolChoice } from './chat.ts';

/** Names that all providers accept. OpenAI and Bedrock allow 64 characters and no dots, Gemini no digit at the beginning. */
const PLAIN = /^[A-Za-z_][\w-]{0,63}$/;

/**
 * The request with `providerName`s for tools, and the same request with names of tools that all providers accept (`plain`).
 * MCP allows dots and slashes, and 128 characters, so clients have such names, and not every client changes them for its
 * own API. Calls get the name of the client back (`restoreStart`).
 */
export function withPlainNames(request: ChatRequest): {
  readonly request: ChatRequest;
  readonly plain: ChatRequest;
} {
  const { tools, turns, toolChoice } = request;
  const called = turns.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === 'toolCall' ? [part.name] : [])),
  );
  const names = plainNames([...tools.map(({ name }) => name), ...called]);
  if (names === undefined) return { request, plain: request };
  const plain = (name: string): string => names.get(name) ?? name;
  const rewritten = {
    ...request,
    tools: tools.map((tool) => ({ ...tool, name: plain(tool.name) })),
    turns: turns.map((turn) => ({
      ...turn,
      parts: turn.parts.map(
        (part): Part => (part.type === 'toolCall' ? { ...part, name: plain(part.name) } : part),
      ),
    })),
    ...(toolChoice === undefined ? {} : { toolChoice: choiceOf(toolChoice, plain) }),
  };
  const named = tools.map((tool) => ({ ...tool, providerName: plain(tool.name) }));
  return { request: { ...request, tools: named }, plain: rewritten };
}

function choiceOf(choice: ToolChoice, plain: (name: string) => string): ToolChoice {
  switch (choice.mode) {
    case 'tool':
      return { ...choice, name: plain(choice.name) };
    case 'allowed':
      return { ...choice, names: choice.names.map(plain) };
    default:
      return choice;
  }
}

/** New names of those that are not plain; undefined if all are. */
function plainNames(names: readonly string[]): ReadonlyMap<string, string> | undefined {
  if (names.every((name) => PLAIN.test(name))) return undefined;
  const taken = new Set(names.filter((name) => PLAIN.test(name)));
  const found = new Map<string, string>();
  for (const name of names) {
    if (PLAIN.test(name) || found.has(name)) continue;
    const similar = name.replaceAll(/[^\w-]/g, '_').replace(/^(?![A-Za-z_])/, '_');
    const isFree = PLAIN.test(similar) && !taken.has(similar);
    const plain = isFree ? similar : `${similar.slice(0, 50)}_${digest(name)}`;
    taken.add(plain);
    found.set(name, plain);
  }
  return found;
}

function digest(name: string): string {
  return createHash('sha256').update(name).digest('hex').slice(0, 12);
}
