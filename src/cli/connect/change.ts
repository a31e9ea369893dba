import { isDeepStrictEqual } from 'node:util';
import { parse as parseToml, stringify as stringifyToml } from 'smol-toml';
import { CommandError } from '../../core/exit-codes.ts';
import type { McpClient, RemoteServer } from '../clients/clients.ts';
import { isObject, jsonc, parseSettings } from '../clients/settings-file.ts';

type Settings = Record<string, unknown>;

/** The setting of a gateway in a client's file. */
export interface Setting {
  readonly client: McpClient;
  /** Name of the server in the client. */
  readonly name: string;
  readonly server: RemoteServer;
}

/** The setting alone, as text for people to copy. */
export function snippet({ client, name, server }: Setting): string {
  const value = { [client.section]: { [name]: client.entry(server) } };
  if (client.format === 'toml') return stringifyToml(value);
  const addition = client.addition?.(server);
  const more = addition === undefined ? {} : { [addition.list]: [addition.item] };
  return `${JSON.stringify({ ...more, ...value }, null, 2)}\n`;
}

/**
 * The text of a settings file with the setting. Everything else keeps its bytes.
 *
 * @throws Error if the file cannot be parsed or has the section in a form that cannot be edited
 */
export function withSetting(text: string, setting: Setting): string {
  const { client, name, server } = setting;
  if (client.format === 'toml') return tomlWith(text, client.section, name, client.entry(server));
  const entry = jsonWith(text, [client.section, name], client.entry(server));
  const addition = client.addition?.(server);
  if (addition === undefined) return entry;
  const list = parseSettings(entry, 'json')[addition.list] ?? [];
  if (!Array.isArray(list)) throw new Error(`\`${addition.list}\` is not a list`);
  const isKnown = list.some((each) => isObject(each) && each['id'] === addition.item.id);
  return isKnown ? entry : jsonWith(entry, [addition.list, list.length], addition.item, true);
}

/** The text of a settings file without the setting. @throws Error as `withSetting` does */
export function withoutSetting(text: string, { client, name, server }: Setting): string {
  const section = parseSettings(text, client.format)[client.section];
  if (!isObject(section) || !(name in section)) return text;
  if (client.format === 'toml') return tomlWith(text, client.section, name, undefined);
  const without = jsonWith(text, [client.section, name], undefined);
  const addition = client.addition?.({ ...server, keyVariable: 'KEY' });
  const list = addition && parseSettings(without, 'json')[addition.list];
  if (addition === undefined || !Array.isArray(list)) return without;
  const index = list.findIndex((each) => isObject(each) && each['id'] === addition.item.id);
  return index === -1 ? without : jsonWith(without, [addition.list, index], undefined);
}

function jsonWith(text: string, path: (string | number)[], value: unknown, isInsertion = false): string {
  const whole = text.trim() === '' ? '{}\n' : text;
  const settings = parseSettings(whole, 'json');
  const [section] = path as [string];
  if (settings[section] !== undefined && typeof settings[section] !== 'object')
    throw new Error(`\`${section}\` is not an object`);
  const [, indent] = /^([ \t]+)\S/m.exec(whole) ?? [];
  const edits = jsonc().modify(whole, path, value, {
    isArrayInsertion: isInsertion,
    formattingOptions: {
      insertSpaces: indent?.startsWith('\t') !== true,
      tabSize: indent === undefined || indent.startsWith('\t') ? 2 : indent.length,
      eol: whole.includes('\r\n') ? '\r\n' : '\n',
    },
  });
  return jsonc().applyEdits(whole, edits);
}

/**
 * Replaces the table of a server, and its subtables, and appends a new one. No library edits TOML and keeps comments; the
 * result is therefore parsed and compared with what it should be.
 */
function tomlWith(text: string, section: string, name: string, entry: object | undefined): string {
  const wanted = expected(text, section, name, entry);
  const kept = withoutTable(text, section, name);
  const added = entry === undefined ? '' : stringifyToml({ [section]: { [name]: entry } }).trim();
  const result =
    entry === undefined ? kept : `${kept.trimEnd()}${kept.trim() === '' ? '' : '\n\n'}${added}\n`;
  if (!isDeepStrictEqual(parsed(result), wanted))
    throw new CommandError(
      'not_ok',
      `\`${section}\` is written in a form that cannot be edited here`,
      'change it by hand: agctl connect without --write prints the setting',
    );
  return result;
}

function parsed(text: string): unknown {
  try {
    return plain(parseToml(text));
  } catch {
    return undefined;
  }
}

/** What the file should contain afterwards. */
function expected(text: string, section: string, name: string, entry: object | undefined): unknown {
  const { [section]: servers, ...rest } = plain(parseSettings(text, 'toml')) as Settings;
  const { [name]: _, ...others } = isObject(servers) ? servers : {};
  const all = entry === undefined ? others : { ...others, [name]: entry };
  return Object.keys(all).length === 0 ? rest : { ...rest, [section]: all };
}

/** Objects of the parser have no prototype. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value)) as unknown;

function withoutTable(text: string, section: string, name: string): string {
  const bare = name.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const own = new RegExp(
    `^\\s*\\[\\s*${section}\\s*\\.\\s*(?:${bare}|"${bare}"|'${bare}')\\s*(?:\\.[^\\]]*)?\\]\\s*(?:#.*)?$`,
  );
  const kept: string[] = [];
  // Comments in front of the next table belong to that.
  let comments: string[] = [];
  let isOwn = false;
  for (const line of text.split('\n')) {
    if (/^\s*\[/.test(line)) {
      if (isOwn) kept.push(...comments);
      isOwn = own.test(line.replace('\r', ''));
    }
    comments = /^\s*(?:#.*)?$/.test(line) ? [...comments, line] : [];
    if (!isOwn) kept.push(line);
  }
  const result = kept.join('\n');
  return result === text || result === '' || result.endsWith('\n') ? result : `${result}\n`;
}
