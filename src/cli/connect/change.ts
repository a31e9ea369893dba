import { parseEnv } from 'node:util';
import type { ClientEndpoint, ClientSettings, SettingsMember } from '../../core/clients/client.ts';
import { isRecord, membersOf } from '../../core/foreign.ts';
import { jsonc, parseSettings } from '../clients/settings-file.ts';
import { envLineSet } from './env-text.ts';
import { tomlWith } from './toml-text.ts';

/** The setting of a gateway in a client's file. */
export interface Setting {
  readonly client: ClientSettings;
  /** Name of the gateway in the client. */
  readonly name: string;
  readonly endpoint: ClientEndpoint;
}

/**
 * The text of a settings file with the setting. Everything else keeps its bytes.
 *
 * @throws Error if the file cannot be parsed or has the section in a form that cannot be edited
 */
export function withSetting(text: string, { client, name, endpoint }: Setting): string {
  const changed = changedBy(text, client, client.members(endpoint, name));
  const addition = client.addition?.(endpoint);
  if (addition === undefined) return changed;
  const list = parseSettings(changed, 'json')[addition.list] ?? [];
  if (!Array.isArray(list)) throw new Error(`\`${addition.list}\` is not a list`);
  const isKnown = list.some((each) => membersOf(each)['id'] === addition.item.id);
  return isKnown ? changed : jsonWith(changed, [addition.list, list.length], addition.item, true);
}

/** The text of a settings file without the setting. @throws Error as `withSetting` does */
export function withoutSetting(text: string, { client, name, endpoint }: Setting): string {
  const whole = { ...endpoint, keyVariable: 'KEY', model: 'any' };
  const members = client.members(whole, name).filter(({ path }) => has(text, client, path));
  if (members.length === 0) return text;
  const without = changedBy(
    text,
    client,
    members.map(({ path }) => ({ path, value: undefined })),
  );
  const addition = client.addition?.(whole);
  const list = addition && parseSettings(without, 'json')[addition.list];
  if (addition === undefined || !Array.isArray(list)) return without;
  const index = list.findIndex((each) => membersOf(each)['id'] === addition.item.id);
  return index === -1 ? without : jsonWith(without, [addition.list, index], undefined);
}

function has(text: string, { format }: ClientSettings, path: SettingsMember['path']): boolean {
  let at: unknown = format === 'env' ? parseEnv(text) : parseSettings(text, format);
  for (const key of path) {
    if (!isRecord(at) || !Object.hasOwn(at, key)) return false;
    at = at[key];
  }
  return true;
}

/** The text with each of the members set; one without a value is removed. */
function changedBy(text: string, { format }: ClientSettings, members: readonly SettingsMember[]): string {
  const change = { json: jsonSet, toml: tomlWith, env: envLineSet }[format];
  return members.reduce((before, { path, value }) => change(before, path, value), text);
}

const jsonSet = (text: string, path: readonly string[], value: unknown): string =>
  jsonWith(text, [...path], value);

function jsonWith(text: string, path: (string | number)[], value: unknown, isInsertion = false): string {
  const whole = text.trim() === '' ? '{}\n' : text;
  const settings = parseSettings(whole, 'json');
  const section = String(path[0]);
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
