import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Path } from '../../core/diagnostic.ts';
import type { TracePlace } from '../../core/trace/event.ts';
import type { YamlSource } from '../../core/yaml/source.ts';
import type { CompileContext, NamedBackend, Problem, SecretNames } from '../kernel/compile-context.ts';
import type { Expression } from '../kernel/expression.ts';
import { fileVersion } from '../kernel/files/file-version.ts';
import { Inspection } from '../kernel/inspection.ts';
import { type ContextOptions, createContext, locationOf } from './compile-context.ts';

/** Lifecycle hooks of a compiled policy, backend or other component. */
export interface Lifecycle {
  /** What takes time before its first use. Called once for a new component; problems are reported as while it is compiled. */
  prepare?(): Promise<void>;
  /** Called whenever a configuration with the component takes effect, also for one that was in use before. */
  served?(): void;
  /** Called on reload with the component being replaced. Return true to take ownership of it, including its `close`. */
  takeOver?(previous: unknown): boolean;
  /** Called on reload if another component of its name replaces it, or with undefined if none does. */
  replacedBy?(successor: unknown): void;
  /** Called if another component has taken ownership of this one, once its last request has ended. */
  retired?(): void;
  /** Called at shutdown, or when a reload removes the component: idle streams should end. */
  drain?(): void;
  /** Releases what it holds open. Called once, after its last request. */
  close?(): void | Promise<void>;
}

/** A top-level backend that a component refers to. The component is compiled again when it is another one. */
interface Reference {
  readonly name: string;
  readonly found: Pick<NamedBackend, 'backend' | 'policies'> | undefined;
}

/** What compiling a component has produced besides its value. Paths are relative to the component, which a reload may move. */
interface CompileOutput {
  readonly expressions: Expression[];
  readonly inspection: Inspection;
  readonly secretNames: SecretNames;
  readonly problems: { readonly path: Path; readonly problem: Problem }[];
  readonly references: Reference[];
  /** Files that it read, with their versions before that. */
  readonly files: Map<string, string>;
  readonly places: { readonly path: Path; readonly at: 'key' | 'value'; readonly place: TracePlace }[];
}

/** A compiled part of the configuration that can outlive its runtime. */
export interface Component {
  /** Everything that it was compiled from; it is reused while this is deeply equal. */
  readonly inputs: unknown;
  readonly value: object & Lifecycle;
  readonly output: CompileOutput;
  /** Its path in the configuration when it was compiled. */
  readonly path: Path;
}

/** The path of a component in the configuration, and where its output is collected. */
export interface CompileSite {
  readonly options: ContextOptions;
  readonly path: Path;
  readonly hostnames: ReadonlySet<string>;
  readonly expressions: Expression[];
}

/** Components of the previous runtime that are no longer used. */
export interface RetiredComponents {
  /** To be closed once their last request has ended. */
  readonly unused: readonly Component[];
  /** Owned by their successors (`takeOver`): `retired` is to be called once their last request has ended. */
  readonly inherited: readonly Component[];
}

/**
 * The components of one runtime, by names that are stable across reloads. A component with unchanged inputs and files is reused
 * from the previous runtime together with its state: rate-limit buckets, keys, sessions, connections.
 */
export class ComponentCache {
  readonly #components = new Map<string, { readonly component: Component; readonly path: Path }>();
  /** Those that are not of the previous runtime, until they are prepared. */
  #added: { readonly component: Component; readonly path: Path }[] = [];
  /** Set only while compiling: a chain of all earlier runtimes would be a memory leak. */
  #previous: ComponentCache | undefined;

  constructor(previous?: ComponentCache) {
    this.#previous = previous;
  }

  /**
   * Returns the previous runtime's component of that name if its inputs are deeply equal and its files unchanged, otherwise compiles a new one.
   * Called again with the same name and path, for what several routes share, it returns the same component.
   */
  get<T extends object>(
    name: string,
    inputs: unknown,
    { options, path, hostnames, expressions }: CompileSite,
    compile: (context: CompileContext) => T,
  ): T {
    const shared = this.#components.get(name);
    if (shared !== undefined && isDeepStrictEqual(shared.path, path)) {
      expressions.push(...shared.component.output.expressions);
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a component of this name, compiled the same way
      return shared.component.value as T;
    }
    const previous = this.#previous;
    const known = previous === undefined ? undefined : previous.#components.get(name)?.component;
    const component =
      known !== undefined &&
      isDeepStrictEqual(known.inputs, inputs) &&
      hasSameReferences(known, options) &&
      hasSameFiles(known)
        ? known
        : compileComponent(name, inputs, options, path, hostnames, compile);
    if (component !== known) this.#added.push({ component, path });
    // A duplicate name is an error in the configuration, but both components must be closed.
    let key = name;
    while (this.#components.has(key)) key += '\u0000';
    this.#components.set(key, { component, path });
    const { output } = component;
    expressions.push(...output.expressions);
    options.inspection.add(output.inspection, component.path, path);
    for (const header of output.secretNames.headers) options.settings.secretNames.headers.add(header);
    for (const parameter of output.secretNames.parameters)
      options.settings.secretNames.parameters.add(parameter);
    for (const value of output.secretNames.values) options.settings.secretNames.values.add(value);
    for (const protocol of output.secretNames.guarded) options.settings.secretNames.guarded.add(protocol);
    for (const file of output.files.keys()) options.dependsOn(file);
    for (const { path: inside, problem } of output.problems) options.report([...path, ...inside], problem);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as above
    return component.value as T;
  }

  has(name: string): boolean {
    return this.#components.has(name);
  }

  /** Called when all components have been compiled. */
  compiled(): void {
    this.#previous = undefined;
  }

  /** Lets the new components do what takes time, one after the other. They report to these options. */
  async prepare({ report, dependsOn }: Pick<ContextOptions, 'report' | 'dependsOn'>): Promise<void> {
    for (const { component, path } of this.#added.splice(0)) {
      if (component.value.prepare === undefined) continue;
      const { problems, files } = component.output;
      const known = problems.length;
      await component.value.prepare();
      for (const { path: inside, problem } of problems.slice(known)) report([...path, ...inside], problem);
      for (const file of files.keys()) dependsOn(file);
    }
  }

  /** Called when these components replace those of `previous`. Returns those that are no longer used. */
  replace(previous: ComponentCache, source: YamlSource): RetiredComponents {
    const kept = new Set<Component>();
    const inherited: Component[] = [];
    for (const [key, { component, path }] of this.#components) {
      const replaced = previous.#components.get(key)?.component;
      if (replaced === component) {
        kept.add(component);
        for (const { path: inside, at, place } of component.output.places)
          Object.assign(place, locationOf(source, [...path, ...inside], at));
      } else if (replaced !== undefined && component.value.takeOver?.(replaced.value) === true)
        inherited.push(replaced);
    }
    for (const [key, { component }] of previous.#components)
      if (!kept.has(component)) component.value.replacedBy?.(this.#components.get(key)?.component.value);
    const unused = [...previous.#components.values()]
      .map(({ component }) => component)
      .filter((component) => !kept.has(component) && !inherited.includes(component));
    return { unused, inherited };
  }

  /** Called when the configuration takes effect. */
  served(): void {
    for (const { component } of this.#components.values()) component.value.served?.();
  }

  drain(): void {
    for (const { component } of this.#components.values()) component.value.drain?.();
  }

  /** Closes all components except those that `except` still uses. */
  async close(except?: ComponentCache): Promise<void> {
    const others = new Set(
      except === undefined ? [] : [...except.#components.values()].map(({ component }) => component),
    );
    const own = [...this.#components.values()].map(({ component }) => component);
    this.#components.clear();
    await Promise.all(own.filter((component) => !others.has(component)).map(({ value }) => value.close?.()));
  }
}

function hasSameReferences({ output }: Component, { backend }: ContextOptions): boolean {
  return output.references.every(({ name, found }) => {
    const current = backend(name);
    return current?.backend === found?.backend && isDeepStrictEqual(current?.policies, found?.policies);
  });
}

const hasSameFiles = ({ output }: Component): boolean =>
  [...output.files].every(([file, version]) => fileVersion(file) === version);

function compileComponent<T extends object>(
  name: string,
  inputs: unknown,
  options: ContextOptions,
  path: Path,
  hostnames: ReadonlySet<string>,
  compile: (context: CompileContext) => T,
): Component {
  const relativePath = (whole: Path): Path => whole.slice(path.length);
  const output: CompileOutput = {
    expressions: [],
    inspection: new Inspection(),
    secretNames: { headers: new Set(), parameters: new Set(), values: new Set(), guarded: new Set() },
    problems: [],
    references: [],
    files: new Map(),
    places: [],
  };
  const componentOptions: ContextOptions = {
    ...options,
    componentName: name,
    // Only workers need it: loading `node:crypto` takes 10 ms.
    get component() {
      return `${name} ${hash('sha256', JSON.stringify(inputs), 'base64url')}`;
    },
    settings: { ...options.settings, secretNames: output.secretNames },
    inspection: output.inspection,
    backend(wanted) {
      const found = options.backend(wanted);
      output.references.push({ name: wanted, found });
      return found;
    },
    dependsOn: (file) => void output.files.set(file, output.files.get(file) ?? fileVersion(file)),
    report: (whole, problem) => void output.problems.push({ path: relativePath(whole), problem }),
    onLocate: (whole, at, place) => void output.places.push({ path: relativePath(whole), at, place }),
  };
  return {
    inputs,
    output,
    path,
    value: compile(createContext(componentOptions, path, hostnames, output.expressions)),
  };
}
