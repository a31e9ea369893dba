import { existsSync } from 'node:fs';
import { basename, dirname, relative, resolve, sep } from 'node:path';
import { parseDocument } from 'yaml';
import { type McpClient, mcpClients } from '../../core/clients/mcp-clients.ts';
import { messageOf } from '../../core/errors.ts';
import { CommandError } from '../../core/exit-codes.ts';
import { elementsOf, isRecord, membersOf } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { readNamedFile } from '../../core/named-file.ts';
import { filesOf, type Place } from '../clients/place.ts';
import { formatOf, parseSettings } from '../clients/settings-file.ts';
import type { Imported, LeftOut } from './imported.ts';
import { isLitellm, readLitellm } from './litellm/read.ts';
import { readServers } from './mcp-servers.ts';
import type { PlaceholderContext } from './placeholders.ts';
import { isPortkey, readPortkey } from './portkey/read.ts';
import { readServerJson, type ServerJsonContext, serverJsonIn } from './server-json/read.ts';
import type { Variables } from './variables.ts';

type Entry = Readonly<Record<string, unknown>>;

/** A file that can be imported. */
export interface Source {
  readonly path: string;
  /** Path as people write it, with `~`. */
  readonly shown: string;
  readonly client: McpClient | undefined;
  readonly content:
    | Servers
    | { readonly litellm: Entry; readonly repeated: readonly number[] }
    | { readonly portkey: Entry }
    | { readonly registry: readonly Entry[] }
    | { readonly gateway: string };
}

/** Sections with MCP servers. */
interface Servers {
  readonly servers: readonly Entry[];
  /** The other members of the file. */
  readonly others: readonly string[];
}

/** Every settings file in its usual place that has MCP servers. Files that cannot be read are skipped. */
export function findSources(place: Place): readonly Source[] {
  const found = mcpClients.flatMap((client) =>
    filesOf(client, place).flatMap((path) => {
      if (!existsSync(path)) return [];
      try {
        const source = readSource(path, place, client);
        return 'servers' in source.content && countOf(source) > 0 ? [source] : [];
      } catch {
        return [];
      }
    }),
  );
  // In a home folder, the files of the user and of the project are the same.
  return found.filter(({ path }, index) => found.findIndex((other) => other.path === path) === index);
}

/**
 * The sources that `--from` names: a path, or a client, whose files are then looked for.
 *
 * @throws CommandError with exit name `usage` if there is none
 */
export function namedSources(name: string, place: Place): readonly Source[] {
  const client = mcpClients.find(({ key }) => key === name);
  if (client === undefined) return [readSource(resolve(place.cwd, name), place)];
  const found = findSources(place).filter((source) => source.client === client);
  if (found.length > 0) return found;
  const places = filesOf(client, place).map((path) => shownPath(path, place));
  throw new CommandError(
    'usage',
    `no MCP servers of ${client.title} found`,
    `looked in ${places.join(' and ')}`,
  );
}

/**
 * Reads a file and finds out what it is.
 *
 * @throws CommandError with exit name `usage` if it cannot be read, or is nothing that can be imported
 */
function readSource(path: string, place: Place, known?: McpClient): Source {
  const shown = shownPath(path, place);
  const text = readNamedFile(path, { maxBytes: LIMITS.settingsFileBytes });
  const client = known ?? mcpClients.find((each) => filesOf(each, place).includes(path));
  const source = { path, shown, client };
  if (/\.ya?ml$/i.test(path)) return { ...source, content: yamlContent(text, shown) };
  let settings: Entry;
  try {
    settings = parseSettings(text, formatOf(path));
  } catch (error) {
    const why = error instanceof RangeError ? 'lists and objects are nested too deeply' : messageOf(error);
    throw new CommandError('usage', `cannot import ${shown}: ${why}`);
  }
  if (['binds', 'gateways'].some((key) => key in settings)) return { ...source, content: { gateway: text } };
  const servers = serverSections(settings, place);
  const registry = servers.length === 0 ? serverJsonIn(settings) : undefined;
  if (registry !== undefined && text.length > LIMITS.serverJsonLength)
    throw new CommandError(
      'usage',
      `${shown} is longer than ${LIMITS.serverJsonLength} characters`,
      'expected the `server.json` of one server, or an answer of a registry with a few',
    );
  if (registry !== undefined) return { ...source, content: { registry } };
  if (servers.length === 0 && isPortkey(settings)) return { ...source, content: { portkey: settings } };
  if (servers.length === 0)
    throw new CommandError(
      'usage',
      `nothing to import in ${shown}`,
      'expected `mcpServers`, `servers`, `context_servers` or `mcp_servers`, `packages` or `remotes` of a server.json, or a config object of Portkey',
    );
  const others = Object.keys(settings).filter((key) => ![...SECTIONS, 'mcp', 'projects'].includes(key));
  return { ...source, content: { servers, others } };
}

/** Where clients have MCP servers. */
const SECTIONS = ['mcpServers', 'servers', 'context_servers', 'mcp_servers'];

/** Settings of a whole editor have hundreds. */
const MOST_NAMED = 10;

/** The line for members of a file beside its servers. */
function leftOutOf(others: readonly string[], shown: string): LeftOut[] {
  if (others.length === 0) return [];
  const named = others.slice(0, MOST_NAMED).map((key) => `\`${key}\``);
  const more = others.length - named.length;
  return [
    {
      what: `${named.join(', ')}${more > 0 ? ` and ${more} more` : ''} in ${shown}`,
      reason: others.includes('inputs')
        ? 'settings of the client; an input that a server uses is a variable to fill in'
        : 'settings of the client',
    },
  ];
}

function yamlContent(text: string, shown: string): Source['content'] {
  const { value, repeated } = yamlIn(text, shown);
  if (isLitellm(value)) return { litellm: value, repeated };
  const [line] = repeated;
  if (line !== undefined) throw notYaml(shown, line);
  if (
    isRecord(value) &&
    ['binds', 'gateways', 'mcp', 'llm', 'routes', 'backends'].some((key) => key in value)
  )
    return { gateway: text };
  throw new CommandError(
    'usage',
    `nothing to import in ${shown}`,
    'expected the `model_list` of LiteLLM, or a configuration of a gateway',
  );
}

const notYaml = (shown: string, line: unknown): CommandError =>
  new CommandError(
    'usage',
    `cannot import ${shown}: not valid YAML${typeof line === 'number' ? `, line ${line}` : ''}`,
  );

/** The value of a YAML text, and the lines of keys that their map has already: of those, readers in Python take the last. */
function yamlIn(text: string, shown: string): { value: unknown; repeated: readonly number[] } {
  // `<<` of YAML 1.1, which they know, too.
  const document = parseDocument(text, { merge: true });
  const lineOf = ({ linePos }: (typeof document.errors)[number]): number | undefined => linePos?.[0].line;
  const [error] = document.errors.filter(({ code }) => code !== 'DUPLICATE_KEY');
  if (error !== undefined) throw notYaml(shown, lineOf(error));
  let value: unknown;
  try {
    value = document.toJS();
  } catch {
    // Too many aliases.
    throw notYaml(shown, undefined);
  }
  if (!isTree(value))
    throw new CommandError('usage', `cannot import ${shown}: an alias of YAML contains itself`);
  return { value, repeated: document.errors.flatMap((each) => lineOf(each) ?? []) };
}

/** Whether a value does not contain itself. */
function isTree(value: unknown): boolean {
  try {
    JSON.stringify(value);
    return true;
  } catch {
    return false;
  }
}

function serverSections(settings: Entry, { cwd }: Place): readonly Entry[] {
  const projects = membersOf(settings['projects']);
  const scopes = [settings, settings['mcp'], projects[cwd]].filter(isRecord);
  return scopes.flatMap((scope) =>
    SECTIONS.flatMap((key) => {
      const section = scope[key];
      return isRecord(section) ? [section] : [];
    }),
  );
}

/** Number of servers or models in a source. */
export function countOf({ content }: Source): number {
  if ('litellm' in content) return elementsOf(content.litellm['model_list']).length;
  if ('registry' in content) return content.registry.length;
  return 'servers' in content ? content.servers.reduce((sum, each) => sum + Object.keys(each).length, 0) : 1;
}

/**
 * Adds what a source has to what is imported. A whole configuration is not handled here. `way`: name of a server of a registry,
 * and which of its packages and remotes to use.
 */
export function importSource(
  source: Source,
  place: Place,
  variables: Variables,
  imported: Imported,
  way: Pick<ServerJsonContext, 'name' | 'wanted'> = {},
): void {
  const context: PlaceholderContext = {
    home: place.home,
    workspace: workspaceOf(source.path, place),
    expandsBareNames: source.client?.expandsBareNames === true,
    variables,
    source: source.shown,
  };
  const { content } = source;
  if ('litellm' in content) {
    for (const line of content.repeated)
      imported.notes.push(
        `line ${line} of ${source.shown} has a key that is there already: the last one counts, as for LiteLLM`,
      );
    readLitellm(content.litellm, context, imported);
  }
  if ('portkey' in content) readPortkey(content.portkey, context, imported);
  if ('registry' in content) readServerJson(content.registry, { ...context, ...way }, imported);
  if ('servers' in content) {
    for (const section of content.servers) readServers(section, context, imported);
    imported.leftOut.push(...leftOutOf(content.others, source.shown));
  }
}

/** The project of `.vscode/mcp.json` and `.mcp.json`; undefined for settings of the user. */
function workspaceOf(path: string, { home }: Place): string | undefined {
  const folder = dirname(path);
  if (folder === home) return undefined;
  if (!basename(folder).startsWith('.')) return basename(path) === '.mcp.json' ? folder : undefined;
  return dirname(folder) === home ? undefined : dirname(folder);
}

/** A path as people write it. */
export function shownPath(path: string, { home, cwd }: Pick<Place, 'home' | 'cwd'>): string {
  const inCwd = relative(cwd, path);
  if (inCwd !== '' && !inCwd.startsWith('..') && !inCwd.includes(`..${sep}`) && resolve(cwd, inCwd) === path)
    return inCwd;
  return path.startsWith(home + sep) ? `~${path.slice(home.length)}` : path;
}
