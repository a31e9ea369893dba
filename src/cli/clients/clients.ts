import { join } from 'node:path';
import type { Context } from '../context.ts';

/** Where the files of clients are looked for. */
export interface Place {
  readonly platform: NodeJS.Platform;
  readonly home: string;
  readonly cwd: string;
  readonly env: Context['env'];
}

/** The gateway's MCP endpoint, as a client is to reach it. */
export interface RemoteServer {
  readonly url: string;
  /** Name of the environment variable with the bearer token; undefined if the gateway asks for none. */
  readonly keyVariable: string | undefined;
}

/** A client or editor that has MCP servers in a settings file. */
export interface McpClient {
  readonly key: string;
  readonly title: string;
  /** Settings files, in the order in which the client reads them; `connect` changes the first. */
  files(place: Place): readonly string[];
  readonly format: 'json' | 'toml';
  /** The member of the file that has a member for each server. */
  readonly section: string;
  /** Whether `$NAME` in values is replaced from the environment; `${NAME}` and `${env:NAME}` are always. */
  readonly expandsBareNames?: boolean;
  /** The setting for the gateway. */
  entry(server: RemoteServer): object;
  /** What else the client needs, as an addition to a list of the file. */
  addition?(
    server: RemoteServer,
  ): { readonly list: string; readonly item: { readonly id: string } } | undefined;
  /** What the user has to do so that the client has the token. Default: set the variable. */
  keyHint?(variable: string): string;
}

/** Folder of settings of desktop applications. */
function applications({ platform, home, env }: Place): string {
  if (platform === 'darwin') return join(home, 'Library', 'Application Support');
  if (platform === 'win32') return env['APPDATA'] || join(home, 'AppData', 'Roaming');
  return env['XDG_CONFIG_HOME'] || join(home, '.config');
}

/** `headers` with the token, if there is one. `reference`: the client's way to write a variable. */
function withToken(
  { keyVariable }: RemoteServer,
  reference: (variable: string) => string,
): { headers?: { Authorization: string } } {
  return keyVariable === undefined ? {} : { headers: { Authorization: `Bearer ${reference(keyVariable)}` } };
}

const braces = (name: string): string => `\${${name}}`;
const envBraces = (name: string): string => `\${env:${name}}`;
/** For clients that read no variables: the token has to be written by hand. */
const byHand = (name: string): string => `<${name}>`;
const replaceByHand =
  (title: string) =>
  (name: string): string =>
    `${title} reads no variables here: replace <${name}> with the key`;

const VSCODE_INPUT = 'agctl-key';

/**
 * Every client that `init` imports from and `connect` writes to. Places and members of files are those of each
 * product's reference of its MCP settings.
 */
export const mcpClients: readonly McpClient[] = [
  {
    key: 'claude',
    title: 'Claude Code',
    files: ({ cwd, home }) => [join(cwd, '.mcp.json'), join(home, '.claude.json')],
    format: 'json',
    section: 'mcpServers',
    entry: (server) => ({ type: 'http', url: server.url, ...withToken(server, braces) }),
  },
  {
    key: 'claude-desktop',
    title: 'Claude Desktop',
    files: (place) => [join(applications(place), 'Claude', 'claude_desktop_config.json')],
    format: 'json',
    section: 'mcpServers',
    // Its settings file has no remote servers; mcp-remote replaces variables in headers itself.
    entry: ({ url, keyVariable }) => ({
      command: 'npx',
      args: [
        '-y',
        'mcp-remote',
        url,
        ...(keyVariable === undefined ? [] : ['--header', `Authorization:Bearer ${braces(keyVariable)}`]),
      ],
    }),
    keyHint: (name) => `start Claude Desktop with ${name} in its environment, where mcp-remote reads it`,
  },
  {
    key: 'cursor',
    title: 'Cursor',
    files: ({ home, cwd }) => [join(home, '.cursor', 'mcp.json'), join(cwd, '.cursor', 'mcp.json')],
    format: 'json',
    section: 'mcpServers',
    entry: (server) => ({ url: server.url, ...withToken(server, envBraces) }),
  },
  {
    key: 'vscode',
    title: 'VS Code',
    files: (place) => [
      join(applications(place), 'Code', 'User', 'mcp.json'),
      join(place.cwd, '.vscode', 'mcp.json'),
    ],
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
  },
  {
    key: 'codex',
    title: 'Codex',
    files: ({ home, cwd, env }) => [
      join(env['CODEX_HOME'] || join(home, '.codex'), 'config.toml'),
      join(cwd, '.codex', 'config.toml'),
    ],
    format: 'toml',
    section: 'mcp_servers',
    entry: ({ url, keyVariable }) => ({
      url,
      ...(keyVariable === undefined ? {} : { bearer_token_env_var: keyVariable }),
    }),
  },
  {
    key: 'gemini',
    title: 'Gemini CLI',
    files: ({ home, cwd }) => [join(home, '.gemini', 'settings.json'), join(cwd, '.gemini', 'settings.json')],
    format: 'json',
    section: 'mcpServers',
    expandsBareNames: true,
    entry: (server) => ({ httpUrl: server.url, ...withToken(server, braces) }),
  },
  {
    key: 'windsurf',
    title: 'Windsurf',
    files: ({ home }) => [join(home, '.codeium', 'windsurf', 'mcp_config.json')],
    format: 'json',
    section: 'mcpServers',
    entry: (server) => ({ serverUrl: server.url, ...withToken(server, envBraces) }),
  },
  {
    key: 'zed',
    title: 'Zed',
    files: (place) => [
      place.platform === 'win32'
        ? join(applications(place), 'Zed', 'settings.json')
        : join(place.env['XDG_CONFIG_HOME'] || join(place.home, '.config'), 'zed', 'settings.json'),
      join(place.cwd, '.zed', 'settings.json'),
    ],
    format: 'json',
    section: 'context_servers',
    entry: (server) => ({ url: server.url, ...withToken(server, byHand) }),
    keyHint: replaceByHand('Zed'),
  },
  {
    key: 'cline',
    title: 'Cline',
    files: (place) => [
      join(
        applications(place),
        ...['Code', 'User', 'globalStorage', 'saoudrizwan.claude-dev'],
        ...['settings', 'cline_mcp_settings.json'],
      ),
    ],
    format: 'json',
    section: 'mcpServers',
    entry: (server) => ({ type: 'streamableHttp', url: server.url, ...withToken(server, byHand) }),
    keyHint: replaceByHand('Cline'),
  },
  {
    key: 'lmstudio',
    title: 'LM Studio',
    files: ({ home }) => [join(home, '.lmstudio', 'mcp.json')],
    format: 'json',
    section: 'mcpServers',
    entry: (server) => ({ url: server.url, ...withToken(server, byHand) }),
    keyHint: replaceByHand('LM Studio'),
  },
];

/** The client with this key; undefined if there is none. */
export function findClient(key: string): McpClient | undefined {
  return mcpClients.find((client) => client.key === key);
}
