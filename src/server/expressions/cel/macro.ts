import { type Compilation, problem, type Scope, type Step } from './compilation.ts';
import type { Node, NodeOf } from './syntax.ts';

export type Call = NodeOf<'call'>;

/** Something that looks like a call and is none: it binds a name, or does not run all of its arguments. */
export interface Macro {
  /** The counts of arguments that it takes, without what stands before the dot. */
  readonly arity: readonly number[];
  /** How it is written, for the reference. */
  readonly usage: string;
  compile(call: Call, scope: Scope | undefined, c: Compilation): Step;
}

/** The name that a macro binds. Throws `CelSyntaxError` when anything else stands in its place. */
export function nameOf(node: Node | undefined, call: Call): string {
  if (node?.kind === 'name') return node.name;
  throw problem(
    'AGW0201',
    node ?? call,
    `the first argument of \`${call.name}\` must be a new name, as in \`${call.name}(x, ...)\``,
  );
}
