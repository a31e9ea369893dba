import { readFileSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { Document, parse, visit } from 'yaml';
import { messageOf } from '../../../core/errors.ts';
import { shownValue } from '../../../core/foreign.ts';
import { LIMITS, type Limits } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import { makeFolder } from '../../../core/make-folder.ts';
import { replaceFile } from '../../../core/replace-file.ts';
import { canonical, definitionIn, hashOf, type ToolDefinition } from './definition.ts';
import { hasHidden, withVisible } from './hidden-characters.ts';

/** A pinned tool. `definition` is for whoever reviews the file; it is absent if it was too long. */
export interface Pin {
  readonly hash: string;
  readonly definition?: ToolDefinition | undefined;
}

/** The pin of a tool. */
export function pinOf(definition: ToolDefinition, limits: Limits): Pin {
  const isKept = canonical(definition).length <= limits.pinnedDefinition;
  return { hash: hashOf(definition), ...(isKept && { definition }) };
}

/** Pins by tool, by target. */
type Pins = Map<string, Map<string, Pin>>;

const HEADER =
  '# Tool definitions as agctl saw them first. To accept the new definition of a tool, delete its entry.\n';

/**
 * The file that pins are kept in. It is read again whenever it has changed, so a deleted entry takes effect at once, and
 * several backends and processes can share it: what others added is kept when it is written.
 *
 * File access is synchronous, so that a list reaches a client only after its new tools are on disk, and nothing runs
 * between reading and replacing the file. It is rare: the file is read when it changes, and written for new tools.
 */
export class PinFile {
  readonly path: string;
  /** How often the file was read, because someone else had changed it. */
  revision = 0;
  readonly #log: Log;
  #pins: Pins = new Map();
  /** Pins that could not be written. */
  readonly #unsaved: Pins = new Map();
  /** Identifies the version of the file that was read; empty if there was none. */
  #version = '';
  #isReadable = true;
  #hasWarned = false;

  constructor(path: string, log: Log) {
    this.path = path;
    this.#log = log;
  }

  /** Reads the file if it has changed. A missing file is an empty one. Throws `Error` if it is not a file of pins. */
  load(): void {
    const found = statSync(this.path, { throwIfNoEntry: false });
    const version = versionOf(found);
    if (version === this.#version) return;
    this.#version = version;
    this.revision += 1;
    this.#isReadable = false;
    if (found !== undefined && !found.isFile()) throw new Error('it is not a regular file');
    if (found !== undefined && found.size > LIMITS.toolPinsBytes)
      throw new Error(`it is larger than ${LIMITS.toolPinsBytes} bytes`);
    this.#pins = found === undefined ? new Map() : parsePins(readFileSync(this.path, 'utf8'));
    this.#isReadable = true;
  }

  /** Like `load`, for a running gateway: if someone is editing the file and it cannot be read, the last pins stay valid. */
  refresh(): void {
    try {
      this.load();
    } catch (error) {
      this.#log.warn('mcp', 'the file of tool pins cannot be read; the last pins stay valid', {
        file: this.path,
        problem: messageOf(error),
      });
    }
  }

  get(target: string, tool: string): Pin | undefined {
    return this.#pins.get(target)?.get(tool) ?? this.#unsaved.get(target)?.get(tool);
  }

  /** All pins of a target by tool. */
  of(target: string): ReadonlyMap<string, Pin> {
    return this.#pins.get(target) ?? new Map();
  }

  /** Names of the pinned tools of a target. */
  names(target: string): string[] {
    return [this.#pins, this.#unsaved].flatMap((pins) => [...(pins.get(target)?.keys() ?? [])]);
  }

  /** Replaces all pins of these targets, and writes the file. Throws `Error` if that fails. */
  replace(targets: ReadonlyMap<string, ReadonlyMap<string, Pin>>): void {
    const pins: Pins = new Map(this.#pins);
    for (const [target, tools] of targets) {
      if (tools.size === 0) pins.delete(target);
      else pins.set(target, new Map(tools));
    }
    this.#write(pins);
  }

  /** Number of pinned tools of a target. */
  count(target: string): number {
    return (this.#pins.get(target)?.size ?? 0) + (this.#unsaved.get(target)?.size ?? 0);
  }

  /** Adds pins of a target and writes the file. If that fails, they are kept in memory, and a warning is logged once. */
  add(target: string, pins: ReadonlyMap<string, Pin>): void {
    for (const [tool, pin] of pins) put(this.#unsaved, target, tool, pin);
    // Someone is editing the file: what they wrote must not be replaced.
    if (!this.#isReadable) return;
    const merged: Pins = new Map([...this.#pins].map(([name, tools]) => [name, new Map(tools)]));
    for (const [name, tools] of this.#unsaved) for (const [tool, pin] of tools) put(merged, name, tool, pin);
    try {
      this.#write(merged);
      this.#unsaved.clear();
    } catch (error) {
      if (this.#hasWarned) return;
      this.#hasWarned = true;
      this.#log.warn(
        'mcp',
        'the file of tool pins cannot be written; new pins are lost at the next restart',
        {
          file: this.path,
          problem: messageOf(error),
        },
      );
    }
  }

  #write(pins: Pins): void {
    const text = Buffer.from(textOf(pins));
    makeFolder(dirname(this.path));
    replaceFile(this.path, text.length > LIMITS.toolPinsBytes ? Buffer.from(textOf(hashesOf(pins))) : text);
    this.#version = versionOf(statSync(this.path));
    this.#pins = pins;
  }
}

function put(pins: Pins, target: string, tool: string, pin: Pin): void {
  const tools = pins.get(target) ?? new Map<string, Pin>();
  pins.set(target, tools.set(tool, pin));
}

/** Differs between two versions of a file: each is a new file with its own inode, or has another time or size. */
const versionOf = (found: Stats | undefined): string =>
  found === undefined ? '' : `${found.ino} ${found.mtimeMs} ${found.size}`;

// Maps instead of objects: a server may name a tool `__proto__`.
function parsePins(text: string): Pins {
  const file = parsedYaml(text);
  const targets = file instanceof Map ? file.get('targets') : undefined;
  if (!(targets instanceof Map)) throw new Error('expected a mapping with the key `targets`');
  const pins: Pins = new Map();
  for (const [target, tools] of targets) {
    if (!(tools instanceof Map)) throw new Error(`expected a mapping of tools at \`targets.${target}\``);
    for (const [tool, pin] of tools) {
      const [hash, definition]: unknown[] =
        pin instanceof Map ? [pin.get('hash'), pin.get('definition')] : [];
      if (typeof hash !== 'string') throw new Error(`expected a hash at \`targets.${target}.${tool}\``);
      put(pins, nameIn(target), nameIn(tool), {
        hash,
        ...(definition instanceof Map && { definition: definitionIn(plain(definition)) }),
      });
    }
  }
  return pins;
}

/** The name of a target or tool. Without quotes, `0x7` is a number, and would be the name `7`. */
function nameIn(key: unknown): string {
  if (typeof key !== 'string') throw new Error(`expected quotes around the name ${shownValue(key)}`);
  return key;
}

/** Maps as objects, at every depth. `Object.fromEntries` treats a member named `__proto__` like any other. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (!(value instanceof Map)) return value;
  return Object.fromEntries([...value].map(([key, member]) => [String(key), plain(member)]));
}

const hashesOf = (pins: Pins): Pins =>
  new Map(
    [...pins].map(([target, tools]) => [
      target,
      new Map([...tools].map(([tool, { hash }]) => [tool, { hash }])),
    ]),
  );

function textOf(pins: Pins): string {
  const sorted = (tools: Map<string, Pin>): Map<string, Pin> => new Map([...tools].sort(byName));
  const targets = new Map([...pins].sort(byName).map(([target, tools]) => [target, sorted(tools)]));
  const document = new Document({ targets }, { aliasDuplicateObjects: false });
  // Only double-quoted strings have escapes.
  visit(document, {
    Scalar(_key, node) {
      if (typeof node.value === 'string' && hasHidden(node.value)) node.type = 'QUOTE_DOUBLE';
    },
  });
  return HEADER + withVisible(document.toString({ lineWidth: 0 }), yamlEscape);
}

const yamlEscape = (code: number): string => `\\U${code.toString(16).padStart(8, '0')}`;

const byName = ([a]: [string, unknown], [b]: [string, unknown]): number => (a < b ? -1 : 1);

/** The error names the place in one line; the parser quotes lines of the file below it. */
function parsedYaml(text: string): unknown {
  try {
    return parse(text, { mapAsMap: true, maxAliasCount: 0, logLevel: 'error' });
  } catch (error) {
    throw new Error(messageOf(error).replace(/:?\n.*$/s, ''), { cause: error });
  }
}
