import { isAlias, isMap, isNode, isScalar, isSeq, type Node, type Pair, type YAMLMap } from 'yaml';
import type { Diagnostic, Path, Range } from '../diagnostic.ts';
import { type BuiltTree, buildTree, isMerge, keyText } from './build.ts';
import { type Environment, variableIn, variablesIn } from './env.ts';
import { YAML_LIMITS, type YamlProblem } from './limits.ts';
import { LineIndex } from './lines.ts';
import { type DecodedScalar, decodeScalar, scalarSite } from './scalar.ts';
import { parseYamlSyntax } from './syntax.ts';

export interface ParsedYaml {
  readonly source: YamlSource;
  readonly diagnostics: readonly Diagnostic[];
}

interface Place {
  readonly node: Node | undefined;
  readonly key: Node | undefined;
}

/** A YAML (or JSON) file as plain values, which maps every value back to its place in the text. */
export class YamlSource {
  readonly text: string;
  readonly file: string;
  /** Null for an empty file; undefined if the text is not valid YAML. */
  readonly value: unknown;
  readonly #lines: LineIndex;
  readonly #root: Node | null;
  readonly #tree: BuiltTree | undefined;
  readonly #pairs = new Map<YAMLMap, ReadonlyMap<string, Pair>>();
  readonly #decoded = new Map<Node, DecodedScalar | undefined>();

  private constructor(text: string, file: string, root: Node | null, tree: BuiltTree | undefined) {
    this.text = text;
    this.file = file;
    this.value = tree?.value;
    this.#lines = new LineIndex(text);
    this.#root = root;
    this.#tree = tree;
  }

  /**
   * Reads `text` and expands environment variables in its scalar values, never in keys or comments. Never throws:
   * every problem (AGW0001 to AGW0005, and AGW0101 for keys such as `__proto__`) is a diagnostic, in source order.
   */
  static parse(text: string, file: string, env: Environment): ParsedYaml {
    const syntax = parseYamlSyntax(text, YAML_LIMITS.lexemes);
    if ('problem' in syntax) {
      const source = new YamlSource(text, file, null, undefined);
      return { source, diagnostics: [source.#diagnostic(syntax.problem)] };
    }
    const contents = syntax.document?.contents;
    const root = isNode(contents) ? contents : null;
    const tree = buildTree(root, text, env, file);
    const source = new YamlSource(text, file, root, tree);
    const problems = tree.problems.toSorted((a, b) => a.start - b.start);
    return { source, diagnostics: problems.map((problem) => source.#diagnostic(problem)) };
  }

  #diagnostic({ start, end, ...rest }: YamlProblem): Diagnostic {
    return { severity: 'error', file: this.file, range: this.#lines.range(start, end), ...rest };
  }

  /** Converts half-open offsets `[start, end)` to a range. */
  range(start: number, end: number): Range {
    return this.#lines.range(start, end);
  }

  /**
   * The range of the key at `path`; for a list item, of the item itself. If the path does not exist, that of its
   * nearest ancestor.
   */
  keyRange(path: Path): Range {
    const { key, node } = this.#nearest(path);
    return this.#nodeRange(key ?? node);
  }

  /**
   * The range of the value at `path`, or of its key if there is no value (`port:`). If the path does not exist, that of
   * its nearest ancestor.
   */
  valueRange(path: Path): Range {
    const { key, node } = this.#nearest(path);
    const isEmpty = node?.range?.[0] === node?.range?.[1];
    return this.#nodeRange(isEmpty ? (key ?? node) : node);
  }

  /**
   * The source range of units `[start, end)` of the text at `path`, as an expression engine counts them. Falls back to
   * the whole value if environment variables changed the text.
   */
  rangeInside(path: Path, start: number, end: number): Range {
    const node = this.#find(path)?.node;
    const target = node && this.#resolve(node);
    const decoded = target && this.#decode(target);
    if (decoded === undefined) return this.valueRange(path);
    const { length } = decoded.value;
    const first = Math.min(Math.max(start, 0), length);
    const last = Math.min(Math.max(end, first), length);
    const after = decoded.ends[length - 1] ?? this.#nodeRange(target).start.offset;
    const from = first < length ? (decoded.starts[first] ?? after) : after;
    return this.#lines.range(from, last > first ? (decoded.ends[last - 1] ?? from) : from);
  }

  /** Whether a problem at `path`, or at one of its ancestors, was reported while parsing. */
  isPoisoned(path: Path): boolean {
    let node: Node | undefined = this.#root ?? undefined;
    for (let depth = 0; node !== undefined; depth++) {
      const target: Node | undefined = this.#resolve(node);
      if (this.#tree?.poisoned.has(node) || (target && this.#tree?.poisoned.has(target))) return true;
      if (depth === path.length) return false;
      node = this.#child(node, path[depth] ?? '')?.node;
    }
    return false;
  }

  /** Every path for which `isPoisoned` holds, without its descendants. */
  poisonedPaths(): Path[] {
    const found: Path[] = [];
    const walk = (value: unknown, path: Path): void => {
      if (this.isPoisoned(path)) found.push(path);
      else if (Array.isArray(value))
        for (const [index, item] of value.entries()) walk(item, [...path, index]);
      else if (value !== null && typeof value === 'object')
        for (const [key, item] of Object.entries(value)) walk(item, [...path, key]);
    };
    if ((this.#tree?.poisoned.size ?? 0) > 0) walk(this.value, []);
    return found;
  }

  /** Whether the text at `path` contains values of environment variables. */
  isFromEnvironment(path: Path): boolean {
    const target = this.#target(path);
    return target !== undefined && (this.#tree?.expanded.has(target) ?? false);
  }

  /** The environment variable that the value at `path` refers to, if it is nothing but that reference, without a fallback. */
  variableAt(path: Path): string | undefined {
    const target = this.#target(path);
    return isScalar(target) ? variableIn(target.source ?? '') : undefined;
  }

  /** The environment variables whose values are in the text at `path`. */
  variablesAt(path: Path): readonly string[] {
    const target = this.#target(path);
    if (!isScalar(target) || this.#tree?.expanded.has(target) !== true) return [];
    return variablesIn(target.source ?? '');
  }

  /** Whether the value at `path` is unquoted, so that YAML chose its type. */
  isPlain(path: Path): boolean {
    const target = this.#target(path);
    return isScalar(target) && target.type === 'PLAIN';
  }

  #target(path: Path): Node | undefined {
    const node = this.#find(path)?.node;
    return node && this.#resolve(node);
  }

  #decode(node: Node): DecodedScalar | undefined {
    if (!isScalar(node) || this.#tree?.expanded.has(node)) return undefined;
    if (!this.#decoded.has(node)) {
      const site = scalarSite(node);
      const decoded = site && decodeScalar(this.text, site);
      // The library's value is authoritative; a different decoding would lead to wrong places.
      this.#decoded.set(node, decoded?.value === node.source ? decoded : undefined);
    }
    return this.#decoded.get(node);
  }

  #nodeRange(node: Node | undefined): Range {
    const [start, end] = node?.range ?? [0, 0];
    // The range of a block collection includes blank lines and comments up to the next token.
    const trimmed = this.text.slice(start, end).trimEnd().length;
    return this.#lines.range(start, isMap(node) || isSeq(node) ? start + trimmed : end);
  }

  #find(path: Path): Place | undefined {
    const place = this.#walk(path);
    return place.rest === 0 ? place : undefined;
  }

  #nearest(path: Path): Place {
    return this.#walk(path);
  }

  #walk(path: Path): Place & { rest: number } {
    let place: Place = { node: this.#root ?? undefined, key: undefined };
    for (const [depth, segment] of path.entries()) {
      const next: Place | undefined = place.node && this.#child(place.node, segment);
      if (next === undefined) return { ...place, rest: path.length - depth };
      place = next;
    }
    return { ...place, rest: 0 };
  }

  #resolve(node: Node): Node | undefined {
    return isAlias(node) ? this.#tree?.targets.get(node) : node;
  }

  #child(node: Node, segment: string | number): Place | undefined {
    const target = this.#resolve(node);
    if (isSeq(target)) {
      const item = target.items[Number(segment)];
      return isNode(item) ? { node: item, key: undefined } : undefined;
    }
    if (!isMap(target)) return undefined;
    const pair = this.#pairsOf(target).get(String(segment));
    if (pair === undefined) return undefined;
    const key = isNode(pair.key) ? pair.key : undefined;
    return { node: isNode(pair.value) ? pair.value : key, key };
  }

  /** The pairs by key, including merged ones. The first of two equal keys counts, as in `value`. */
  #pairsOf(map: YAMLMap): ReadonlyMap<string, Pair> {
    const known = this.#pairs.get(map);
    if (known !== undefined) return known;
    const pairs = new Map<string, Pair>();
    this.#pairs.set(map, pairs);
    for (const pair of map.items) {
      const key = keyText(pair.key);
      if (key !== undefined && !isMerge(pair) && !pairs.has(key)) pairs.set(key, pair);
    }
    for (const pair of map.items.filter(isMerge)) {
      for (const [key, inherited] of this.#merged(pair.value)) if (!pairs.has(key)) pairs.set(key, inherited);
    }
    return pairs;
  }

  #merged(value: unknown): [string, Pair][] {
    const target = isNode(value) ? this.#resolve(value) : undefined;
    if (isMap(target)) return [...this.#pairsOf(target)];
    return isSeq(target) ? target.items.flatMap((item) => this.#merged(item)) : [];
  }
}
