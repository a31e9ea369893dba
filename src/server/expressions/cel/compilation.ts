import type { Span } from '../../kernel/expression.ts';
import { type CelProblemCode, CelSyntaxError } from './errors.ts';
import type { Node } from './syntax.ts';
import { toCel, type Value } from './values.ts';

/** State of one evaluation: a slot for each root variable and each local name, set when first read. */
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
  /** Names of the available root variables. */
  readonly variables: ReadonlySet<string>;
  /** Dotted paths that are read, starting with the root variable. A root alone means the whole variable. */
  readonly paths = new Map<string, Span>();
  readonly roots = new Map<string, number>();
  slots = 0;
  /** Number of nodes compiled so far. The difference around a loop body is the cost of one iteration. */
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

  /** Compiles a node that is evaluated once per item. Also returns the number of steps of an iteration. */
  compileLoop(node: Node, scope: Scope | undefined): { step: Step; weight: number } {
    const before = this.nodes;
    const step = this.compile(node, scope);
    return { step, weight: this.nodes - before + 1 };
  }

  /** Uses of `in` on a value that is always a string; these always fail. */
  readonly inOnStrings: Span[] = [];

  /** Records that a path is read, with its first position. */
  note(path: string, span: Span): void {
    if (!this.paths.has(path)) this.paths.set(path, { start: span.start, end: span.end });
  }

  bind(name: string, outer: Scope | undefined): Scope {
    return { name, slot: this.slots++, outer };
  }

  /** Compiles the access to a root variable, without recording what is read. */
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
