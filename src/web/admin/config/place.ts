/** Where the cursor is in a YAML text, as a path in the configuration. */
export interface Place {
  /** Of the mapping whose key is typed, or of the value. */
  readonly path: readonly (string | number)[];
  readonly typing: 'key' | 'value';
  /** Offset at which the typed word begins. */
  readonly from: number;
  /** Column of the key. */
  readonly column: number;
  /** Keys that the mapping has already. */
  readonly siblings: ReadonlySet<string>;
}

interface Line {
  /** Column of each `-` at the start of the line. */
  readonly dashes: readonly number[];
  /** Column of what follows them. */
  readonly column: number;
  readonly key: string | undefined;
  readonly rest: string;
}

function readLine(text: string): Line | undefined {
  const [, indent = '', marks = '', content = ''] = /^( *)((?:- +)*)(.*)$/.exec(text) ?? [];
  if (content === '' || content.startsWith('#')) return undefined;
  const dashes = [...marks.matchAll(/-/g)].map(({ index }) => indent.length + index);
  const [, , key, rest = ''] = /^(["']?)([^\s:#"'{}[\]]+)\1:(?: +(.*))?$/.exec(content) ?? [];
  return { dashes, column: indent.length + marks.length, key, rest };
}

/**
 * Reads the lines above the cursor by their indentation, because a text that is being typed is rarely valid YAML.
 * Undefined in places that are written otherwise, such as `{…}` or a text of several lines.
 */
export function placeAt(text: string, offset: number): Place | undefined {
  const before = text.slice(0, offset).split('\n');
  const typed = before.pop() ?? '';
  const [, indent = '', marks = '', content = ''] = /^( *)((?:- +)*)(.*)$/.exec(typed) ?? [];
  const column = indent.length + marks.length;
  const [, , key, value] = /^(["']?)([^\s:#"'{}[\]]+)\1: +([\w.-]*)$/.exec(content) ?? [];
  if (key === undefined && !/^[\w.-]*$/.test(content)) return undefined;
  const dashes = [...marks.matchAll(/-/g)].map(({ index }) => indent.length + index);
  const above = parents(before, column, dashes);
  const after = text.slice(offset).split('\n').slice(1);
  return {
    path: key === undefined ? above.path : [...above.path, key],
    typing: key === undefined ? 'key' : 'value',
    from: offset - (key === undefined ? content : (value ?? '')).length,
    column,
    siblings: new Set([...above.siblings, ...keysBelow(after, column)]),
  };
}

/** The path of the mapping at a column, from the lines above it. */
function parents(
  lines: readonly string[],
  column: number,
  ownDashes: readonly number[],
): { readonly path: readonly (string | number)[]; readonly siblings: readonly string[] } {
  const path: (string | number)[] = [];
  const siblings: string[] = [];
  let limit = column;
  // A list may begin at the column of its key, so the key of a list is searched differently.
  let isInList = false;
  const enterItems = (dashes: readonly number[]): void => {
    for (const dash of dashes.toReversed()) {
      path.unshift(0);
      limit = dash;
      isInList = true;
    }
  };
  enterItems(ownDashes);
  for (const text of lines.toReversed()) {
    const line = readLine(text);
    if (line === undefined) continue;
    const { dashes, key, rest } = line;
    if (path.length === 0 && line.column === column && key !== undefined) siblings.push(key);
    const isParent = line.column < limit || (isInList && line.column === limit && dashes.length === 0);
    if (isParent && key !== undefined && /^(?:#.*)?$/.test(rest)) {
      path.unshift(key);
      limit = line.column;
      isInList = false;
      enterItems(dashes);
    } else if (!isInList && line.column === limit && dashes.length > 0) enterItems(dashes);
    if (limit === 0 && !isInList) break;
  }
  return { path, siblings };
}

function keysBelow(lines: readonly string[], column: number): readonly string[] {
  const keys: string[] = [];
  for (const text of lines) {
    const line = readLine(text);
    if (line === undefined) continue;
    if (line.column < column || (line.dashes.length > 0 && line.column === column)) break;
    if (line.column === column && line.key !== undefined) keys.push(line.key);
  }
  return keys;
}
