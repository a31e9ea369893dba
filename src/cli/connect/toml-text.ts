import { isDeepStrictEqual } from 'node:util';
import { parse as parseToml } from 'smol-toml';
import { tomlLine, tomlTable } from '../../core/clients/setting-text.ts';
import { CommandError } from '../../core/exit-codes.ts';
import { membersOf, parseJson } from '../../core/foreign.ts';
import { parseSettings } from '../clients/settings-file.ts';

/**
 * The text of a TOML file with one value of the file itself set (`path` has one key), or one table of texts (two). Without
 * a value it is removed, with its subtables. No library edits TOML and keeps comments; the result is therefore parsed and
 * compared with what it should be.
 */
export function tomlWith(text: string, path: readonly string[], value: unknown): string {
  const wanted = expected(text, path, value);
  const [section = '', name] = path;
  const result = name === undefined ? withLine(text, section, value) : withTable(text, section, name, value);
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
function expected(text: string, [section = '', name]: readonly string[], value: unknown): unknown {
  const { [section]: former, ...rest } = membersOf(plain(parseSettings(text, 'toml')));
  if (name === undefined) return value === undefined ? rest : { ...rest, [section]: value };
  const { [name]: _, ...others } = membersOf(former);
  const all = value === undefined ? others : { ...others, [name]: value };
  return Object.keys(all).length === 0 ? rest : { ...rest, [section]: all };
}

/** Objects of the parser have no prototype. */
const plain = (value: unknown): unknown => parseJson(JSON.stringify(value));

/** Values of the file itself come before its first table. */
function withLine(text: string, key: string, value: unknown): string {
  const lines = text.split('\n');
  const tables = lines.findIndex((line) => /^\s*\[/.test(line));
  const own = new RegExp(`^\\s*(?:${key}|"${key}"|'${key}')\\s*=`);
  const at = lines.findIndex((line, index) => (tables === -1 || index < tables) && own.test(line));
  if (value === undefined) return lines.filter((_, index) => index !== at).join('\n');
  const line = tomlLine(key, value);
  if (at !== -1) return lines.with(at, line).join('\n');
  return `${line}\n${/^\s*\[/.test(text) ? '\n' : ''}${text}`;
}

function withTable(text: string, section: string, name: string, table: unknown): string {
  const kept = withoutTable(text, section, name);
  if (table === undefined) return kept;
  const added = tomlTable([section, name], membersOf(table));
  return `${kept.trimEnd()}${kept.trim() === '' ? '' : '\n\n'}${added}\n`;
}

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
