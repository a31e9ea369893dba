/** What a client is set up for. */
export interface Target {
  /** Name of the entry in the client's settings: letters, digits and hyphens. */
  readonly name: string;
  /** Address of the MCP endpoint, or base address of the models without `/v1`. */
  readonly url: string;
  /** How clients prove who they are: `key` in a header, `oauth` by a sign-in of their own. */
  readonly access: 'open' | 'key' | 'oauth';
  /** A model that can be asked; for models only. */
  readonly model: string;
}

/** How to set up one client. */
export interface Recipe {
  readonly client: string;
  /** Where the text belongs: a file, a terminal, a program. */
  readonly where: string;
  readonly text: string;
}

/** Environment variable that holds the key: a key in a file or in a shell's history is read by others. */
export const KEY = 'AGCTL_KEY';

/** A text as one word of a POSIX shell. */
export const shellWord = (text: string): string =>
  /^[\w./:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;

export const json = (value: unknown): string => JSON.stringify(value, null, 2);

/** A name for settings, from the name of a route. */
export const entryName = (text: string): string =>
  text
    .replace(/^.*\//, '')
    .replaceAll(/[^a-zA-Z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
    .toLowerCase() || 'agctl';
