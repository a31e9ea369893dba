import { isRecord } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import { escapeControls } from '../../../core/log.ts';
import { hasHidden, withVisible } from '../../../server/mcp/tool-pinning/hidden-characters.ts';
import { NotImported } from '../imported.ts';

export type Entry = Readonly<Record<string, unknown>>;

const snakeCase = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** A member under its name, or the one that it had until September 2025: `is_required`. */
export const memberOf = (entry: Entry, name: string): unknown => entry[name] ?? entry[snakeCase(name)];

/**
 * A member as text; undefined if there is none. Numbers and truth values count as text, which publishers write for defaults
 * although the format has texts alone.
 *
 * @throws NotImported if it is something else, too long, or has characters that are not shown
 */
export function textOf(entry: Entry, name: string): string | undefined {
  const value = memberOf(entry, name);
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'object') throw new NotImported(`\`${name}\` is not a text`);
  return checkedText(String(value), name);
}

/** @throws NotImported if a text is too long, or has characters that are not shown */
function checkedText(text: string, name: string): string {
  if (text.length > LIMITS.serverJsonText)
    throw new NotImported(`\`${name}\` is longer than ${LIMITS.serverJsonText} characters`);
  if (hasHidden(text) || escapeControls(text) !== text)
    throw new NotImported(`\`${name}\` has control characters or characters that are not shown`);
  return text;
}

/** Whether a member is true or false; undefined if it is neither. */
export function flagOf(entry: Entry, name: string): boolean | undefined {
  const value = memberOf(entry, name);
  return typeof value === 'boolean' ? value : undefined;
}

/**
 * The entries of a list, which are objects. Empty if the member is missing.
 *
 * @throws NotImported if it is not a list of objects, or too long
 */
export function entriesOf(entry: Entry, name: string): readonly Entry[] {
  const list = memberOf(entry, name) ?? [];
  if (!Array.isArray(list)) throw new NotImported(`\`${name}\` is not a list`);
  if (list.length > LIMITS.serverJsonItems)
    throw new NotImported(`\`${name}\` has more than ${LIMITS.serverJsonItems} items`);
  return list.map((item: unknown, index) => {
    if (!isRecord(item)) throw new NotImported(`\`${name}[${index}]\` is not an object`);
    return item;
  });
}

/** The description of an input or server, on one line. */
export const descriptionOf = (entry: Entry): string => {
  const text = memberOf(entry, 'description');
  return typeof text === 'string' ? onOneLine(text) : '';
};

/** A text for people, which may have any character: shortened, and what is not shown as an escape. */
export function onOneLine(text: string): string {
  const most = LIMITS.serverJsonDescription;
  const line = text.slice(0, LIMITS.serverJsonText).replaceAll(/\s+/g, ' ').trim();
  const cut = line.length > most ? `${line.slice(0, most).trimEnd()}…` : line;
  return withVisible(escapeControls(cut), (code) => `\\u{${code.toString(16)}}`);
}
