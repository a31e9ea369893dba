import { isDeepStrictEqual } from 'node:util';
import type { Path } from '../../core/diagnostic.ts';
import type { TracePlace } from '../../core/trace/event.ts';
import type { YamlSource } from '../../core/yaml/source.ts';
import type { CompileContext, Problem, SecretNames } from '../kernel/compile-context.ts';
import type { Expression } from '../kernel/expression.ts';
import { Inspection } from '../kernel/inspection.ts';
import { type ContextOptions, createContext } from './compile-context.ts';
import { placeOf } from './place.ts';

/** What a compiled policy, backend or other part may do when its time begins and ends. */
export interface Lifecycle {
  /** Asked when the part replaces an older one. True: it looks after that one from now on, and closes it. */
  takeOver?(previous: unknown): boolean;
  /** Another one looks after it, and its last request has ended. */
  retired?(): void;
  /** A stop was asked for: what waits for nothing in particular should end. */
  drain?(): void;
  close?(): void | Promise<void>;
}

/** What was told while a part was compiled. Places are relative to the part, which a reload may move. */
interface CompileOutput {
  readonly expressions: Expression[];
  readonly inspection: Inspection;
  readonly secretNames: SecretNames;
  readonly problems: { readonly path: Path; readonly problem: Problem }[];
  readonly places: { readonly path: Path; readonly at: 'key' | 'value'; readonly place: TracePlace }[];
}

/** A compiled piece of the configuration that can live longer than its runtime. */
export interface Component {
  /** All that it was compiled from. */
  readonly inputs: unknown;
  readonly value: object & Lifecycle;
  readonly notes: CompileOutput;
  /** Where it stood when it was compiled. */
  readonly path: Path;
}

/** Where a part stands, and who is told what it tells. */
export interface CompileSite {
  readonly options: ContextOptions;
  readonly path: Path;
  readonly hostnames: ReadonlySet<string>;
  readonly expressions: Expression[];
}

/** Parts that do not serve any more. Once their last request has ended, each is to be closed, or told so. */
export interface RetiredComponents {
  readonly unused: readonly Component[];
  readonly inherited: readonly Component[];
}

/**
 * The parts of one runtime, by names that stay over reloads. A part whose inputs have not changed is taken over from
 * the runtime before, with all it has: buckets, keys, sessions, connections.
 */
export class ComponentCache {
  readonly #parts = new Map<string, { readonly part: Component; readonly path: Path }>();
  /** Known while compiling only: a chain of all runtimes there ever were would be a leak. */
  #previous: ComponentCache | undefined;

  constructor(previous?: ComponentCache) {
    this.#previous = previous;
  }

  /** The part of that name: the one that serves if it was compiled from equal inputs, else a new one. */
  get<T extends object>(
    name: string,
    inputs: unknown,
    { options, path, hostnames, expressions }: CompileSite,
    compile: (context: CompileContext) => T,
  ): T {
    const previous = this.#previous;
    const known = previous === undefined ? undefined : previous.#parts.get(name)?.part;
    const part =
      known !== undefined && isDeepStrictEqual(known.inputs, inputs)
        ? known
        : compilePart(inputs, options, path, hostnames, compile);
    // Two of one name are an error of the configuration, but both must be closed.
    let key = name;
    while (this.#parts.has(key)) key += '\u0000';
    this.#parts.set(key, { part, path });
    const { notes } = part;
    expressions.push(...notes.expressions);
    options.inspection.add(notes.inspection, part.path, path);
    for (const header of notes.secretNames.headers) options.settings.secretNames.headers.add(header);
    for (const parameter of notes.secretNames.parameters)
      options.settings.secretNames.parameters.add(parameter);
    for (const { path: inside, problem } of notes.problems) options.report([...path, ...inside], problem);
    return part.value as T;
  }

  /** No more parts come. */
  compiled(): void {
    this.#previous = undefined;
  }

  /** These parts serve from now on. Returns what does not. */
  succeed(previous: ComponentCache, source: YamlSource): RetiredComponents {
    const kept = new Set<Component>();
    const inherited: Component[] = [];
    for (const [key, { part, path }] of this.#parts) {
      const before = previous.#parts.get(key)?.part;
      if (before === part) {
        kept.add(part);
        for (const { path: inside, at, place } of part.notes.places)
          Object.assign(place, placeOf(source, [...path, ...inside], at));
      } else if (before !== undefined && part.value.takeOver?.(before.value) === true) inherited.push(before);
    }
    const unused = [...previous.#parts.values()]
      .map(({ part }) => part)
      .filter((part) => !kept.has(part) && !inherited.includes(part));
    return { unused, inherited };
  }

  drain(): void {
    for (const { part } of this.#parts.values()) part.value.drain?.();
  }

  /** Closes all parts, except those of another runtime that goes on with them. */
  async close(except?: ComponentCache): Promise<void> {
    const others = new Set(except === undefined ? [] : [...except.#parts.values()].map(({ part }) => part));
    const mine = [...this.#parts.values()].map(({ part }) => part);
    this.#parts.clear();
    await Promise.all(mine.filter((part) => !others.has(part)).map(({ value }) => value.close?.()));
  }
}

function compilePart<T extends object>(
  inputs: unknown,
  options: ContextOptions,
  path: Path,
  hostnames: ReadonlySet<string>,
  compile: (context: CompileContext) => T,
): Component {
  const inside = (whole: Path): Path => whole.slice(path.length);
  const notes: CompileOutput = {
    expressions: [],
    inspection: new Inspection(),
    secretNames: { headers: new Set(), parameters: new Set() },
    problems: [],
    places: [],
  };
  const own: ContextOptions = {
    ...options,
    settings: { ...options.settings, secretNames: notes.secretNames },
    inspection: notes.inspection,
    report: (whole, problem) => void notes.problems.push({ path: inside(whole), problem }),
    placed: (whole, at, place) => void notes.places.push({ path: inside(whole), at, place }),
  };
  return { inputs, notes, path, value: compile(createContext(own, path, hostnames, notes.expressions)) };
}
