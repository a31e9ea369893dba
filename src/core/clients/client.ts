/** Where a settings file is: below the home folder, in a project, or in a folder of its own kind. */
export interface ClientFile {
  /**
   * `applications`: settings of desktop applications. `config`: those of programs that follow XDG, also on macOS. `codex`:
   * CODEX_HOME or `~/.codex`.
   */
  readonly root: 'home' | 'project' | 'applications' | 'config' | 'codex';
  /** With `/` between its parts. */
  readonly path: string;
}

export type SettingsFormat = 'json' | 'toml' | 'env';

/** One value of a settings file, and the members that lead to it. */
export interface SettingsMember {
  readonly path: readonly [string, ...string[]];
  readonly value: unknown;
}

/** An endpoint of the gateway, as a client is to reach it. */
export interface ClientEndpoint {
  /** Address of the MCP endpoint, or base address of the models without `/v1`. */
  readonly url: string;
  /** Name of the environment variable with the bearer token; undefined if the gateway asks for none. */
  readonly keyVariable: string | undefined;
  /** A model that can be asked; for models only. */
  readonly model?: string | undefined;
}

/** How a program is told to use the gateway. */
export interface ClientSettings {
  readonly key: string;
  readonly title: string;
  /** Settings files, in the order in which the client reads them; `connect` changes the first. */
  readonly files: readonly ClientFile[];
  readonly format: SettingsFormat;
  /** Names of the models that the client is made for; for models only. */
  readonly family?: RegExp;
  /** Where the setting belongs, in words, if the file alone does not say it. */
  readonly where?: string;
  /** What to set. @param name Name of the gateway in the client. */
  members(endpoint: ClientEndpoint, name: string): readonly SettingsMember[];
  /** What else the client needs, as an addition to a list of the file. */
  addition?(
    endpoint: ClientEndpoint,
  ): { readonly list: string; readonly item: { readonly id: string } } | undefined;
  /** A command that does the same without the file. */
  command?(endpoint: ClientEndpoint, name: string): string;
  /** What the user has to do so that the client has the token. Default: set the variable. */
  keyHint?(variable: string): string;
}

/** For clients that read no variables: the token has to be written by hand. */
export const byHand = (name: string): string => `<${name}>`;

export const replaceByHand =
  (title: string) =>
  (name: string): string =>
    `${title} reads no variables here: replace <${name}> with the key`;

const SHOWN_ROOTS: Readonly<Record<ClientFile['root'], string>> = {
  home: '~/',
  project: '',
  applications: '',
  config: '~/.config/',
  codex: '~/.codex/',
};

/** `~/.cursor/mcp.json, or .cursor/mcp.json of a project` */
export function placeOf({ where, files }: ClientSettings): string {
  if (where !== undefined) return where;
  return files
    .map(({ root, path }) => `${SHOWN_ROOTS[root]}${path}${root === 'project' ? ' of a project' : ''}`)
    .join(', or ');
}

/** A text as one word of a POSIX shell. */
export const shellWord = (text: string): string =>
  /^[\w./:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
