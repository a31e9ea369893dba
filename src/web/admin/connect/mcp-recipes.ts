import { json, KEY, type Recipe, shellWord, type Target } from './recipe.ts';

/**
 * Settings of MCP clients for an endpoint. Each has its own names for the same thing; sources are the clients'
 * documentation pages on remote MCP servers.
 */
export const mcpRecipes = (target: Target): readonly Recipe[] =>
  [claudeCode, claudeDesktop, cursor, vsCode, codex, geminiCli, windsurf, inspector].map((of) => of(target));

const bearer = (key: string): Record<string, string> => ({ Authorization: `Bearer ${key}` });
const headers = ({ access }: Target, key: string): { headers?: Record<string, string> } =>
  access === 'key' ? { headers: bearer(key) } : {};

function claudeCode({ name, url, access }: Target): Recipe {
  const header = access === 'key' ? ` \\\n  --header "Authorization: Bearer $${KEY}"` : '';
  return {
    client: 'Claude Code',
    where: 'In a terminal',
    text: `claude mcp add --transport http ${name} ${shellWord(url)}${header}`,
  };
}

/** Its file starts programs only; `mcp-remote` connects one to an address. */
function claudeDesktop({ name, url, access }: Target): Recipe {
  const isKey = access === 'key';
  // Claude Desktop on Windows splits arguments at spaces, so the value with a space is a variable.
  const args = ['-y', 'mcp-remote', url, ...(isKey ? ['--header', `Authorization:\${AUTHORIZATION}`] : [])];
  const env = isKey ? { env: { AUTHORIZATION: 'Bearer YOUR-KEY' } } : {};
  return {
    client: 'Claude Desktop',
    where: 'claude_desktop_config.json (Settings, Developer, Edit Config)',
    text: json({ mcpServers: { [name]: { command: 'npx', args, ...env } } }),
  };
}

const cursor = (target: Target): Recipe => ({
  client: 'Cursor',
  where: '~/.cursor/mcp.json, or .cursor/mcp.json of a project',
  text: json({
    mcpServers: { [target.name]: { url: target.url, ...headers(target, `\${env:${KEY}}`) } },
  }),
});

function vsCode(target: Target): Recipe {
  const inputs = [
    { type: 'promptString', id: 'agctl-key', description: 'Key of the gateway', password: true },
  ];
  return {
    client: 'VS Code',
    where: '.vscode/mcp.json of a project',
    text: json({
      ...(target.access === 'key' ? { inputs } : {}),
      servers: {
        [target.name]: { type: 'http', url: target.url, ...headers(target, `\${input:agctl-key}`) },
      },
    }),
  };
}

const codex = ({ name, url, access }: Target): Recipe => ({
  client: 'Codex',
  where: '~/.codex/config.toml',
  text: [
    `[mcp_servers.${name}]`,
    `url = ${JSON.stringify(url)}`,
    ...(access === 'key' ? [`bearer_token_env_var = "${KEY}"`] : []),
  ].join('\n'),
});

const geminiCli = (target: Target): Recipe => ({
  client: 'Gemini CLI',
  where: '~/.gemini/settings.json',
  text: json({ mcpServers: { [target.name]: { httpUrl: target.url, ...headers(target, `$${KEY}`) } } }),
});

const windsurf = (target: Target): Recipe => ({
  client: 'Windsurf',
  where: '~/.codeium/windsurf/mcp_config.json',
  text: json({
    mcpServers: { [target.name]: { serverUrl: target.url, ...headers(target, `\${env:${KEY}}`) } },
  }),
});

function inspector({ url, access }: Target): Recipe {
  const header = access === 'key' ? ` \\\n  --header "Authorization: Bearer $${KEY}"` : '';
  return {
    client: 'MCP Inspector',
    where: 'In a terminal: lists the tools',
    text: `npx @modelcontextprotocol/inspector --cli ${shellWord(url)} \\\n  --transport http --method tools/list${header}`,
  };
}
