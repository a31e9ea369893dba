import { elementsOf, membersOf } from '../../../../core/foreign.ts';
import type { Json } from '../../chat/chat-format.ts';

/**
 * Names of the tools that the client has found and put into results, as blocks `tool_reference`: Claude gets a tool with
 * `defer_loading` from then on (Anthropic, "Tool search tool", custom implementation), and so do other providers.
 */
export function foundTools(body: Json): ReadonlySet<unknown> {
  const names = new Set<unknown>();
  for (const message of elementsOf(body['messages']))
    for (const block of elementsOf(membersOf(message)['content']))
      for (const inner of elementsOf(membersOf(block)['content'])) {
        const { type, tool_name: name } = membersOf(inner);
        if (type === 'tool_reference') names.add(name);
      }
  return names;
}
