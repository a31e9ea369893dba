import {
  type Document,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Pair,
  parseDocument,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';
import { type Path, pathText } from '../../core/diagnostic.ts';
import { CommandError } from '../../core/exit-codes.ts';
import { pairOf, textOf } from '../../server/config/convert/yaml-edit.ts';

/** The list of MCP targets of a configuration, in its text. */
export interface TargetList {
  readonly text: string;
  readonly path: Path;
  readonly list: YAMLSeq;
  /** `targets` and the list. */
  readonly pair: Pair;
  /** What the pair is in. */
  readonly section: YAMLMap;
}

interface Section {
  readonly path: Path;
  readonly pair: Pair;
}

/**
 * Finds the only list of targets of a configuration.
 *
 * @throws CommandError with exit name `not_ok` if there is none, or more than one
 */
export function targetListOf(text: string, file: string): TargetList {
  const lines = new LineCounter();
  const document: Document = parseDocument(text, {
    keepSourceTokens: true,
    uniqueKeys: false,
    lineCounter: lines,
  });
  const lineOf = (node: unknown): number =>
    isScalar(node) || isMap(node) || isSeq(node) ? lines.linePos(node.range?.[0] ?? 0).line : 1;
  const [broken] = document.errors;
  if (broken !== undefined)
    throw new CommandError(
      'not_ok',
      `${file}:${lines.linePos(broken.pos[0]).line}: not valid YAML`,
      'correct it first: agctl config validate',
    );
  const sections = sectionsIn(document.contents, []);
  const [section, ...others] = sections;
  if (section === undefined)
    throw new CommandError(
      'not_ok',
      `${file} has no \`mcp\` section that a target could be added to`,
      'add the line `mcp: { targets: [] }`, and try again: this command fills the list, which must not stay empty; `agctl init` writes a whole file',
    );
  if (others.length > 0)
    throw new CommandError(
      'not_ok',
      `${file} has several \`mcp\` sections: ${sections.map(({ path, pair }) => `${pathText(path)} (line ${lineOf(pair.key)})`).join(', ')}`,
      'expected one; add the target by hand to that which is meant',
    );
  const map = section.pair.value;
  const pair = isMap(map) ? pairOf(map, 'targets') : undefined;
  if (!isMap(map) || pair === undefined || !isSeq(pair.value))
    throw new CommandError(
      'not_ok',
      `${file}:${lineOf(section.pair.key)}: \`${pathText(section.path)}\` has no list of targets`,
      'write `targets: []` in it, which this command fills; a reference to another part of the file cannot be added to',
    );
  return { text, path: [...section.path, 'targets'], list: pair.value, pair, section: map };
}

/** The top-level section, and each backend with targets. `config.mcp` has other settings. */
function sectionsIn(node: unknown, path: Path): Section[] {
  if (isSeq(node)) return node.items.flatMap((item, index) => sectionsIn(item, [...path, index]));
  if (!isMap(node)) return [];
  return node.items.flatMap((pair): Section[] => {
    const key = textOf(pair.key);
    if (key === undefined) return [];
    const inner = [...path, key];
    const isSection =
      key === 'mcp' && (path.length === 0 || (isMap(pair.value) && pair.value.has('targets')));
    return isSection ? [{ path: inner, pair }] : sectionsIn(pair.value, inner);
  });
}

/** The line of the target with this name; undefined if there is none. */
export function lineOfTarget({ text, list }: TargetList, name: string): number | undefined {
  const taken = list.items.find((item) => isMap(item) && textOf(item.get('name', true)) === name);
  return isMap(taken) ? text.slice(0, taken.range?.[0] ?? 0).split('\n').length : undefined;
}

/** The name of the only target whose tools have no prefix because it is alone; undefined if there is none. */
export function onlyTarget({ list, section }: TargetList): string | undefined {
  const mode = textOf(section.get('prefixMode', true)) ?? 'conditional';
  const [first] = list.items;
  return list.items.length === 1 && mode === 'conditional' && isMap(first)
    ? textOf(first.get('name', true))
    : undefined;
}
