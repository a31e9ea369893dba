import type { ClientEndpoint } from '../../../core/clients/client.ts';
import { shellWord } from '../../../core/clients/client.ts';
import { mcpClients } from '../../../core/clients/mcp-clients.ts';
import { type Recipe, recipeOf, type Target } from './recipe.ts';

/** Settings of MCP clients for an endpoint, and a command that lists its tools. */
export const mcpRecipes = (target: Target): readonly Recipe[] => [
  ...mcpClients.map((client) => recipeOf(client, target)),
  inspector(target),
];

function inspector({ url, keyVariable }: ClientEndpoint): Recipe {
  const header = keyVariable === undefined ? '' : ` \\\n  --header "Authorization: Bearer $${keyVariable}"`;
  return {
    client: 'MCP Inspector',
    where: 'In a terminal: lists the tools',
    text: `npx @modelcontextprotocol/inspector --cli ${shellWord(url)} \\\n  --transport http --method tools/list${header}`,
  };
}
