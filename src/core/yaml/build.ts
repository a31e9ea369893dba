import type { Alias, Node, Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml';
import { isAlias, isMap, isNode, isScalar, isSeq, Schema } from 'yaml';
import type { Path } from '../diagnostic.ts';
import { membersOf } from '../foreign.ts';
import { nearest } from '../suggest.ts';
import { type Environment, envFileName, expandEnvironment } from './env.ts';
import { YAML_LIMITS, type YamlProblem } from './limits.ts';
import { LineIndex } from './lines.ts';
import { decodeScalar, scalarSite } from './scalar.ts';
import { tooDeep } from './syntax.ts';

/** Result of the walk over a document. */
export interface BuiltTree {
  readonly value: unknown;
  readonly problems: readonly YamlProblem[];
  readonly targets: ReadonlyMap<Alias, Node>;
  /** Nodes whose value is not what the author meant; further problems at them are follow-ups. */
  readonly poisoned: ReadonlySet<Node>;
  /** Scalars that contained environment variables. */
  readonly expanded: ReadonlySet<Node>;
}

interface Part {
  readonly value: unknown;
  /** Number of values inside; an alias counts as the values that it refers to. */
  readonly size: number;
  /** Nesting depth of collections. */
  readonly height: number;
}

const NOTHING: Part = { value: undefined, size: 1, height: 0 };
const CORE_TAGS = new Schema({ schema: 'core' }).tags;
const CORE_PREFIX = 'tag:yaml.org,2002:';
const KNOWN_TAGS = new Set([
  '!',
  ...['str', 'int', 'float', 'bool', 'null', 'map', 'seq'].map((t) => CORE_PREFIX + t),
]);
/** Keys that exist on every JavaScript object and could mislead later code. */
const RESERVED_KEYS = new Set(['__proto__', 'constructor', 'prototype']);

/** Converts the nodes of a document to plain values, expands environment variables, and reports every problem. */
export function buildTree(root: Node | null, text: string, env: Environment, file: string): BuiltTree {
  const builder = new Builder(text, env, envFileName(file));
  const { value } = builder.build(root, [], 1);
  return { value, ...builder };
}

/** The text of a key, or undefined if it is not a scalar. `1` and `true` as keys are texts too. */
export function keyText(key: unknown): string | undefined {
  return isScalar(key) ? (key.source ?? String(key.value)) : undefined;
}

/** Whether the pair is a merge (`<<: *defaults`); a quoted `"<<"` is an ordinary key. */
export function isMerge(pair: Pair): boolean {
  return isScalar(pair.key) && pair.key.type === 'PLAIN' && pair.key.source === '<<';
}

class Builder {
  readonly problems: YamlProblem[] = [];
  readonly targets = new Map<Alias, Node>();
  readonly poisoned = new Set<Node>();
  readonly expanded = new Set<Node>();
  readonly #text: string;
  readonly #lines: LineIndex;
  readonly #env: Environment;
  /** Where variables can be defined, besides the environment. */
  readonly #definedIn: string;
  /** An anchor without a part is still being built, so an alias to it would be circular. */
  readonly #anchors = new Map<string, { node: Node; part?: Part }>();
  readonly #reportedLimits = new Set<string>();
  /** The lines with a variable that has no value: one problem, however often it is used. */
  readonly #undefined = new Map<string, number[]>();
  #aliases = 0;
  #aliasedValues = 0;
  #expandedUnits = 0;

  constructor(text: string, env: Environment, envFile: string | undefined) {
    this.#text = text;
    this.#lines = new LineIndex(text);
    this.#env = env;
    this.#definedIn = envFile === undefined ? 'with --env-from' : `in \`${envFile}\` beside this file`;
  }

  build(node: unknown, path: Path, depth: number): Part {
    if (!isNode(node)) return { value: null, size: 1, height: 0 };
    if (isAlias(node)) return this.#alias(node, path, depth);
    const anchor = node.anchor;
    if (anchor !== undefined) this.#anchors.set(anchor, { node });
    this.#checkTag(node, path);
    const part = this.#content(node, path, depth);
    if (anchor !== undefined) this.#anchors.set(anchor, { node, part });
    return part;
  }

  #content(node: Node, path: Path, depth: number): Part {
    if (isScalar(node)) return { value: this.#scalar(node, path), size: 1, height: 0 };
    if (depth > YAML_LIMITS.depth) return this.#limit('depth', node, path, tooDeep(0).message);
    if (isMap(node)) return this.#map(node, path, depth);
    return isSeq(node) ? this.#seq(node, path, depth) : NOTHING;
  }

  #push(problem: YamlProblem): void {
    if (this.problems.length < YAML_LIMITS.problems) this.problems.push(problem);
  }

  #report(
    node: unknown,
    path: Path,
    rest: Pick<YamlProblem, 'code' | 'message' | 'label' | 'help' | 'notes'>,
  ): void {
    const [start, end] = (isNode(node) ? node.range : undefined) ?? [0, 0];
    this.#push({ start, end, path, ...rest });
  }

  /** Reports each limit once, however often it is exceeded. */
  #limit(name: string, node: Node, path: Path, message: string): Part {
    if (!this.#reportedLimits.has(name)) this.#report(node, path, { code: 'AGW0003', message });
    this.#reportedLimits.add(name);
    this.poisoned.add(node);
    return NOTHING;
  }

  #alias(node: Alias, path: Path, depth: number): Part {
    if (++this.#aliases > YAML_LIMITS.aliases) {
      return this.#limit('aliases', node, path, `the file uses more than ${YAML_LIMITS.aliases} aliases`);
    }
    const anchor = this.#anchors.get(node.source);
    if (anchor?.part === undefined) {
      const near = nearest(node.source, this.#anchors.keys());
      this.#report(node, path, {
        code: 'AGW0003',
        message: anchor
          ? `alias \`*${node.source}\` refers to itself`
          : `no anchor \`&${node.source}\` before this alias`,
        ...(!anchor && {
          help:
            near === undefined
              ? `if it is a string, put it in quotes: \`"*${node.source}"\``
              : `an anchor with a similar name exists: \`&${near}\``,
        }),
      });
      this.poisoned.add(node);
      return NOTHING;
    }
    if (depth + anchor.part.height - 1 > YAML_LIMITS.depth)
      return this.#limit('depth', node, path, tooDeep(0).message);
    this.#aliasedValues += anchor.part.size;
    if (this.#aliasedValues > YAML_LIMITS.aliasedValues) {
      return this.#limit('values', node, path, 'the aliases of this file expand to more than 100,000 values');
    }
    this.targets.set(node, anchor.node);
    return anchor.part;
  }

  #seq(node: YAMLSeq, path: Path, depth: number): Part {
    const value: unknown[] = [];
    let size = 1;
    let height = 0;
    for (const [index, item] of node.items.entries()) {
      const part = this.build(item, [...path, index], depth + 1);
      value.push(part.value);
      size += part.size;
      height = Math.max(height, part.height);
    }
    return { value, size, height: height + 1 };
  }

  #map(node: YAMLMap, path: Path, depth: number): Part {
    const value: Record<string, unknown> = {};
    const merged: Part[] = [];
    const seen = new Map<string, Node>();
    let size = 1;
    let height = 0;
    for (const pair of node.items) {
      const key = this.#key(pair, seen, path);
      if (key === undefined) continue;
      const merge = isMerge(pair);
      const part = this.build(pair.value, [...path, key], merge ? depth : depth + 1);
      if (merge) merged.push(...this.#merges(pair, part, [...path, key]));
      else value[key] = part.value;
      size += part.size;
      height = Math.max(height, merge ? part.height - 1 : part.height);
    }
    for (const { value: from } of merged) {
      for (const [key, inherited] of Object.entries(membersOf(from))) {
        if (!Object.hasOwn(value, key)) value[key] = inherited;
      }
    }
    return { value, size, height: height + 1 };
  }

  #key(pair: Pair, seen: Map<string, Node>, path: Path): string | undefined {
    const node = pair.key;
    const key = keyText(node);
    if (!isNode(node) || key === undefined || key === '') {
      const message = key === '' ? 'a key is missing here' : 'a key must be plain text';
      const help = isMap(node)
        ? `put it in quotes if it is a string; a variable of the environment is \`\${NAME}\``
        : undefined;
      this.#report(node, path, { code: key === '' ? 'AGW0001' : 'AGW0003', message, ...(help && { help }) });
      return undefined;
    }
    this.#checkTag(node, path);
    const at = [...path, key];
    if (RESERVED_KEYS.has(key)) {
      this.#report(node, at, { code: 'AGW0101', message: `\`${key}\` cannot be used as a key` });
      return undefined;
    }
    const first = seen.get(key);
    if (first !== undefined) {
      const { line } = this.#lines.position(first.range?.[0] ?? 0);
      this.#report(node, at, {
        code: 'AGW0002',
        message: `duplicate key \`${key}\``,
        label: `first given on line ${line}`,
        help: 'keep one of the two',
      });
      return undefined;
    }
    seen.set(key, node);
    return key;
  }

  #merges(pair: Pair, part: Part, path: Path): Part[] {
    // Undefined values were reported already: an alias without an anchor, or one over the limit.
    const parts = [part.value].flat().filter((each) => each !== undefined);
    if (parts.every((each) => each !== null && typeof each === 'object' && !Array.isArray(each))) {
      return parts.map((value) => ({ ...part, value }));
    }
    this.#report(pair.value ?? pair.key, path, {
      code: 'AGW0003',
      message: 'only mappings can be merged with `<<`',
    });
    return [];
  }

  #checkTag(node: Node, path: Path): void {
    const tag = isAlias(node) ? undefined : node.tag;
    if (tag === undefined || KNOWN_TAGS.has(tag)) return;
    const shown = tag.startsWith(CORE_PREFIX) ? `!!${tag.slice(CORE_PREFIX.length)}` : tag;
    this.#report(node, path, {
      code: 'AGW0003',
      message: `the tag \`${shown}\` is not supported`,
      help: 'write the value without a tag',
    });
    this.poisoned.add(node);
  }

  #scalar(node: Scalar, path: Path): unknown {
    const raw = node.source ?? '';
    if (!raw.includes('$')) return node.value;
    const room = YAML_LIMITS.bytes - this.#expandedUnits;
    const { text, undefinedReferences, isTooLong } = expandEnvironment(raw, this.#env, room);
    if (undefinedReferences.length > 0) {
      this.#reportUndefined(node, raw, path, undefinedReferences);
      return raw;
    }
    if (text === raw) return node.value;
    this.expanded.add(node);
    this.#expandedUnits += text.length;
    if (isTooLong) {
      return this.#limit('bytes', node, path, 'environment variables make the file larger than 5 MiB').value;
    }
    const isText = node.type !== 'PLAIN' || node.tag === '!' || node.tag === `${CORE_PREFIX}str`;
    return isText ? text : resolvePlain(text);
  }

  #reportUndefined(
    node: Scalar,
    raw: string,
    path: Path,
    references: readonly { name: string; start: number; end: number }[],
  ): void {
    this.poisoned.add(node);
    const site = scalarSite(node);
    const decoded = site && decodeScalar(this.#text, site);
    const [start, end] = node.range ?? [0, 0];
    const exact = decoded?.value === raw ? decoded : undefined;
    for (const reference of references) {
      const from = exact?.starts[reference.start] ?? start;
      const others = this.#undefined.get(reference.name);
      if (others !== undefined) {
        const { line } = this.#lines.position(from);
        if (line !== others[0]) others.push(line);
        continue;
      }
      const lines = [this.#lines.position(from).line];
      this.#undefined.set(reference.name, lines);
      this.#push({
        code: 'AGW0004',
        message: `the environment variable \`${reference.name}\` is not defined`,
        start: from,
        end: exact?.ends[reference.end - 1] ?? end,
        path,
        get label() {
          return `no value and no fallback${alsoOn(lines.slice(1))}`;
        },
        help: `define it in the environment or ${this.#definedIn}, or give a fallback: \`\${${reference.name}:-value}\`; a literal dollar sign is \`$$\``,
      });
    }
  }
}

const MOST_LINES = 5;

function alsoOn(lines: readonly number[]): string {
  const others = [...new Set(lines)];
  if (others.length === 0) return '';
  const more = others.length > MOST_LINES ? ', …' : '';
  return `; also on line${others.length > 1 ? 's' : ''} ${others.slice(0, MOST_LINES).join(', ')}${more}`;
}

/** Resolves unquoted text by YAML 1.2's core schema: null, boolean, number or text. */
function resolvePlain(text: string): unknown {
  for (const tag of CORE_TAGS) {
    if (tag.collection !== undefined || tag.default !== true || tag.test?.test(text) !== true) continue;
    const resolved = tag.resolve(text, () => {}, {});
    return isScalar(resolved) ? resolved.value : resolved;
  }
  return text;
}
