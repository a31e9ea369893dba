import {
  byHand,
  type ClientEndpoint,
  type ClientFile,
  type ClientSettings,
  replaceByHand,
  shellWord,
} from './client.ts';

/** A client or editor that has MCP servers in a settings file. */
export interface McpClient extends ClientSettings {
  readonly format: 'json' | 'toml';
  /** The member of the file that has a member for each server. */
  readonly section: string;
  /** Whether `$NAME` in values is replaced from the environment; `${NAME}` and `${env:NAME}` are always. */
  readonly expandsBareNames?: boolean;
}

/** `headers` with the token, if there is one. `reference`: the client's way to write a variable. */
function withToken(
  { keyVariable }: ClientEndpoint,
  reference: (variable: string) => string,
): { headers?: { Authorization: string } } {
  return keyVariable === undefined ? {} : { headers: { Authorization: `Bearer ${reference(keyVariable)}` } };
}

const braces = (name: string): string => `\${${name}}`;
const envBraces = (name: string): string => `\${env:${name}}`;
const home = (path: string): ClientFile => ({ root: 'home', path });
const project = (path: string): ClientFile => ({ root: 'project', path });
const application = (path: string): ClientFile => ({ root: 'applications', path });

const VSCODE_INPUT = 'agctl-key';

type Definition = Omit<McpClient, 'members'> & {
  /** The setting for one server. */
  entry(server: ClientEndpoint): object;
};

const defined = ({ entry, ...client }: Definition): McpClient => ({
  ...client,
  members: (server, name) => [{ path: [client.section, name], value: entry(server) }],
});

/**
 * Every client that `init` imports from, `connect` writes to and the Connect page shows. Places and members of files are
 * those of each product's reference of its MCP settings.
 */
export const mcpClients: readonly McpClient[] = [
  defined({
    key: 'claude',
    title: 'Claude Code',
    files: [project('.mcp.json'), home('.claude.json')],
    format: 'json',
    section: 'mcpServers',
    entry: (server) => ({ type: 'http', url: server.url, ...withToken(server, braces) }),
    command: ({ url, keyVariable }, name) =>
      `claude mcp add --transport http ${name} ${shellWord(url)}${
        keyVariable === undefined ? '' : ` \\\n  --header "Authorization: Bearer $${keyVariable}"`
      }`,
  }),
  defined({
    key: 'claude-desktop',
    title: 'Claude Desktop',
    files: [application('Claude/claude_desktop_config.json')],
    where: 'claude_desktop_config.json (Settings, Developer, Edit Config)',
    format: 'json',
    section: 'mcpServers',
    // Its settings file starts programs only: mcp-remote connects one to an address, and replaces variables in headers.
    // Claude Desktop on Windows splits arguments at spaces, so the value with a space is a variable.
    entry: ({ url, keyVariable }) => ({
      command: 'npx',
      args: [
        '-y',
        'mcp-remote',
        url,
        ...(keyVariable === undefined ? [] : ['--header', `Authorization:${braces('AUTHORIZATION')}`]),
      ],
      ...(keyVariable === undefined ? {} : { env: { AUTHORIZATION: `Bearer ${byHand(keyVariable)}` } }),
    }),
    keyHint: replaceByHand('Claude Desktop'),
  }),
  defined({
    key: 'cursor',
    title: 'Cursor',
    files: [home('.cursor/mcp.json'), project('.cursor/mcp.json')],
    format: 'json',
    section: 'mcpServers',
    entry: (server) => ({ url: server.url, ...withToken(server, envBraces) }),
  }),
  defined({
    key: 'vscode',
    title: 'VS Code',
    files: [application('Code/User/mcp.json'), project('.vscode/mcp.json')],
    where: 'MCP: Open User Configuration, or .vscode/mcp.json of a project',
    format: 'json',
    section: 'servers',
    entry: (server) => ({
      type: 'http',
      url: server.url,
      ...withToken(server, () => `\${input:${VSCODE_INPUT}}`),
    }),
    addition: ({ keyVariable }) =>
      keyVariable === undefined
        ? undefined
        : {
            list: 'inputs',
            item: {
              id: VSCODE_INPUT,
              ...{ type: 'promptString', description: 'Key of the gateway', password: true },
            },
          },
    keyHint: () => 'VS Code asks for the key and keeps it',
  }),
  defined({
    key: 'codex',
    title: 'Codex',
    files: [{ root: 'codex', path: 'config.toml' }, project('.codex/config.toml')],
    format: 'toml',
    section: 'mcp_servers',
    entry: ({ url, keyVariable }) => ({
      url,
      ...(keyVariable === undefined ? {} : { bearer_token_env_var: keyVariable }),
    }),
  }),
  defined({
    key: 'gemini',
    title: 'Gemini CLI',
    files: [home('.gemini/settings.json'), project('.gemini/settings.json')],
    format: 'json',
    section: 'mcpServers',
    expandsBareNames: true,
    entry: (server) => ({ httpUrl: server.url, ...withToken(server, braces) }),
  }),
  defined({
    key: 'windsurf',
    title: 'Windsurf',
    files: [home('.codeium/windsurf/mcp_config.json')],
    format: 'json',
    section: 'mcpServers',
    entry: (server) => ({ serverUrl: server.url, ...withToken(server, envBraces) }),
  }),
  defined({
    key: 'zed',
    title: 'Zed',
    files: [{ root: 'config', path: 'zed/settings.json' }, project('.zed/settings.json')],
    format: 'json',
    section: 'context_servers',
    entry: (server) => ({ url: server.url, ...withToken(server, byHand) }),
    keyHint: replaceByHand('Zed'),
  }),
  defined({
    key: 'cline',
    title: 'Cline',
    files: [application('Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json')],
    where: 'cline_mcp_settings.json (MCP Servers, Configure)',
    format: 'json',
    section: 'mcpServers',
    entry: (server) => ({ type: 'streamableHttp', url: server.url, ...withToken(server, byHand) }),
    keyHint: replaceByHand('Cline'),
  }),
  defined({
    key: 'lmstudio',
    title: 'LM Studio',
    files: [home('.lmstudio/mcp.json')],
    format: 'json',
    section: 'mcpServers',
    entry: (server) => ({ url: server.url, ...withToken(server, byHand) }),
    keyHint: replaceByHand('LM Studio'),
  }),
];
