import type { Span } from '../../kernel/expression.ts';
import { type CelProblemCode, CelSyntaxError } from './errors.ts';
import type { Node } from './syntax.ts';
import { toCel, type Value } from './values.ts';

/** What one evaluation works on: a place for each root and each local name, filled when first read. */
export interface Frame {
  readonly slots: (Value | undefined)[];
  readonly lookup: (root: string) => unknown;
}

/** A compiled node. */
export type Step = (frame: Frame) => Value;

/** Names that macros bind (`x` in `list.map(x, ...)`), innermost first. */
export interface Scope {
  readonly name: string;
  readonly slot: number;
  readonly outer: Scope | undefined;
}

export function findLocal(scope: Scope | undefined, name: string): Scope | undefined {
  for (let at = scope; at !== undefined; at = at.outer) if (at.name === name) return at;
  return undefined;
}

type Compile = (node: Node, scope: Scope | undefined, compilation: Compilation) => Step;

/** State of compiling one expression: what it reads, and how many slots it needs. */
export class Compilation {
  /** Names of the variables that the place has. */
  readonly variables: ReadonlySet<string>;
  /** Dotted paths that are read, from the root on; a root alone stands for all of it. */
  readonly paths = new Map<string, Span>();
  readonly roots = new Map<string, number>();
  slots = 0;
  /** Nodes compiled so far. The difference around a loop body is what one turn costs. */
  nodes = 0;
  readonly #compile: Compile;

  constructor(variables: readonly string[], compile: Compile) {
    this.variables = new Set(variables);
    this.#compile = compile;
  }

  compile(node: Node, scope: Scope | undefined): Step {
    this.nodes++;
    return this.#compile(node, scope, this);
  }

  /** Compiles a part that runs once per item, and says how many steps a turn takes. */
  compileLoop(node: Node, scope: Scope | undefined): { step: Step; weight: number } {
    const before = this.nodes;
    const step = this.compile(node, scope);
    return { step, weight: this.nodes - before + 1 };
  }

  /** Where `in` stands before something that is certainly a text, so that it always fails. */
  readonly inOnStrings: Span[] = [];

  /** Notes that a path is read; where it is read first is remembered. */
  note(path: string, span: Span): void {
    if (!this.paths.has(path)) this.paths.set(path, { start: span.start, end: span.end });
  }

  bind(name: string, outer: Scope | undefined): Scope {
    return { name, slot: this.slots++, outer };
  }

  /** Reading of a root variable, without noting what of it is read. */
  root(name: string): Step {
    let slot = this.roots.get(name);
    if (slot === undefined) {
      slot = this.slots++;
      this.roots.set(name, slot);
    }
    return loadRoot(slot, name);
  }
}

function loadRoot(slot: number, name: string): Step {
  return (frame) => {
    const known = frame.slots[slot];
    if (known !== undefined) return known;
    const value = toCel(frame.lookup(name));
    frame.slots[slot] = value;
    return value;
  };
}

export function problem(
  code: CelProblemCode,
  span: Span,
  message: string,
  help?: string,
  label?: string,
): CelSyntaxError {
  return new CelSyntaxError({ code, message, start: span.start, end: span.end, help, label });
}
