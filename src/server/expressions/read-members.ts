import { AppError } from '../../core/errors.ts';
import { isRecord, jsonIn, parseJson } from '../../core/foreign.ts';
import { foldedName, shownName } from '../../core/json-members.ts';
import type { Expression } from '../kernel/expression.ts';
import { looseName } from '../kernel/loose-name.ts';
import { knownJson } from '../kernel/request/request-body.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { parse } from './cel/engine.ts';
import { JSON_STEP, type NameRead, namesRead, type ValuePath } from './cel/read-places.ts';

/** Names that rules read in one object, and below it, by what lenient servers compare of them. */
interface ObjectReads {
  readonly members: Map<string, ObjectReads>;
  readonly byLooseName: Map<string, string>;
}

const noReads = (): ObjectReads => ({ members: new Map(), byLooseName: new Map() });

/** A member that a server may take for one that a rule reads. */
export interface Variant {
  readonly name: string;
  readonly expected: string;
}

/** Servers in JavaScript that copy or merge an object may get the members of this one as if they were its own. */
const PROTOTYPE = '__proto__';

/** A variant and why it is rejected, for an error message; `place` says what it is a member of. */
export function problemOf({ name, expected }: Variant, place = ''): string {
  const isCase = foldedName(name) === foldedName(expected);
  const problem = isCase
    ? `differs from ${shownName(expected)} in case only`
    : `could be read as ${shownName(expected)}`;
  return `${shownName(name)}${place} ${problem}`;
}

/**
 * The members that rules read of a JSON value from outside. A rule on `path` says nothing about `Path`, but a server that matches
 * names without case takes it for the same: Go's `encoding/json` does, and Jackson and .NET where they are set so. `__proto__` may stand
 * for any of them.
 */
export class ReadMembers {
  readonly #root = noReads();
  /** Names that are read of some object below, which is known only when the rule runs. */
  readonly #anywhere = noReads();

  /** `base`: the path of the value in expressions. */
  constructor(expressions: readonly Pick<Expression, 'source' | 'reads'>[], ...bases: readonly ValuePath[]) {
    for (const base of bases) {
      const variable = base.filter((step) => step !== JSON_STEP).join('.');
      for (const expression of expressions)
        if (expression.reads(variable))
          for (const read of namesRead(parse(expression.source))) this.#add(read, base);
    }
  }

  get isEmpty(): boolean {
    return this.#root.members.size === 0 && this.#anywhere.members.size === 0;
  }

  #add({ of, name, isExact }: NameRead, base: ValuePath): void {
    const isBelow = base.every((step, index) => of[index] === step);
    if (isExact && isBelow) add(of.slice(base.length).reduce(add, this.#root), name);
    else if (!isExact && (isBelow || of.every((step, index) => base[index] === step)))
      add(this.#anywhere, name);
  }

  /** The first member of the value that may be taken for one that is read there. */
  variant(value: unknown): Variant | undefined {
    return this.#variantIn(value, this.#root);
  }

  #variantIn(value: unknown, reads: ObjectReads | undefined): Variant | undefined {
    const anywhere = this.#anywhere;
    if (typeof value === 'string') return this.#variantInText(value, reads?.members.get(JSON_STEP));
    if (typeof value !== 'object' || value === null) return undefined;
    if (reads === undefined && anywhere.members.size === 0) return undefined;
    if (Array.isArray(value)) {
      for (const item of value) {
        const found = this.#variantIn(item, reads);
        if (found !== undefined) return found;
      }
      return undefined;
    }
    if (!isRecord(value)) return undefined;
    for (const name in value) {
      const expected = expectedOf(name, reads) ?? expectedOf(name, anywhere);
      if (expected !== undefined) return { name, expected };
      const found = this.#variantIn(value[name], reads?.members.get(name));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** In a text that a rule parses with `json()`. One that is not JSON makes the rule fail. */
  #variantInText(text: string, reads: ObjectReads | undefined): Variant | undefined {
    if (reads === undefined) return undefined;
    try {
      return this.#variantIn(parseJson(text), reads);
    } catch {
      return undefined;
    }
  }
}

function add({ members, byLooseName }: ObjectReads, name: string): ObjectReads {
  let below = members.get(name);
  if (below === undefined) {
    below = noReads();
    members.set(name, below);
    byLooseName.set(looseName(name), name);
  }
  return below;
}

function expectedOf(name: string, reads: ObjectReads | undefined): string | undefined {
  if (reads === undefined || reads.members.size === 0 || reads.members.has(name)) return undefined;
  if (name === PROTOTYPE) return [...reads.members.keys()].find((each) => each !== JSON_STEP);
  return reads.byLooseName.get(looseName(name));
}

/** What rules read of a request body as JSON. `more`: paths of variables that are the same value. */
export const readsOfBody = (
  rules: readonly { readonly expression: Expression }[],
  ...more: readonly ValuePath[]
): ReadMembers =>
  new ReadMembers(
    rules.map(({ expression }) => expression),
    ['request', 'body', JSON_STEP],
    ['request', 'bodyPrefix', JSON_STEP],
    ...more,
  );

/**
 * Rejects a request that rules have allowed, if its body has a member that a server may take for one that they read.
 *
 * @throws AppError `bad_request`
 */
export function rejectVariants(reads: ReadMembers, { body }: RequestContext): void {
  if (reads.isEmpty) return;
  const bytes = body.captured ?? body.prefix;
  if (bytes === undefined || bytes.length === 0) return;
  // Undefined if it is not JSON, of which no member is read.
  const value = knownJson(bytes) ?? jsonIn(bytes.toString('utf8'));
  const variant = reads.variant(value);
  if (variant !== undefined)
    throw new AppError('bad_request', {
      message: `the member ${problemOf(variant, ' of the request body')}`,
    });
}
