import { membersOf } from '../foreign.ts';
import type { ClientEndpoint, ClientSettings, SettingsMember } from './client.ts';

/** The setting of one client alone, as text for people to copy; without a line break at the end. */
export function settingText(client: ClientSettings, endpoint: ClientEndpoint, name: string): string {
  const members = client.members(endpoint, name);
  if (client.format === 'toml') return tomlText(members);
  if (client.format === 'env')
    return members.map(({ path, value }) => `${path.at(-1)}=${String(value)}`).join('\n');
  const addition = client.addition?.(endpoint);
  const settings = nested(members);
  return JSON.stringify(
    addition === undefined ? settings : { [addition.list]: [addition.item], ...settings },
    null,
    2,
  );
}

function nested(members: readonly SettingsMember[]): object {
  const settings: Record<string, unknown> = {};
  for (const { path, value } of members) {
    let at = settings;
    for (const key of path.slice(0, -1)) {
      at[key] ??= {};
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the line above created it
      at = at[key] as Record<string, unknown>;
    }
    at[path.at(-1) ?? ''] = value;
  }
  return settings;
}

/** Values of the file itself first: a table lasts until the next one begins. */
function tomlText(members: readonly SettingsMember[]): string {
  const [values, tables] = [
    members.filter(({ path }) => path.length === 1),
    members.filter(({ path }) => path.length > 1),
  ];
  return [
    ...values.map(({ path: [key], value }) => tomlLine(key, value)),
    ...tables.map(({ path, value }) => tomlTable(path, membersOf(value))),
  ]
    .join('\n')
    .replaceAll(/(?<=[^\n])\n\[/g, '\n\n[');
}

/** A table of texts; `path` are bare keys. */
export const tomlTable = (path: readonly string[], table: Readonly<Record<string, unknown>>): string =>
  [`[${path.join('.')}]`, ...Object.entries(table).map(([key, value]) => tomlLine(key, value))].join('\n');

/** JSON's escapes are also those of TOML's basic strings. */
export const tomlLine = (key: string, value: unknown): string => `${key} = ${JSON.stringify(value)}`;
