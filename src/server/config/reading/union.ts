import type { z } from 'zod';
import { isRecord } from '../../../core/foreign.ts';
import { typeFits } from '../../../core/schema/describe-types.ts';
import {
  alternatives,
  definition,
  isOptional,
  keysOf,
  objectSchemas,
  type Schema,
} from '../../../core/schema/walk.ts';
import { nearest } from '../../../core/suggest.ts';

type Issue = z.core.$ZodIssue;

/** One branch of a union: its schema, and why the value does not match it. */
interface Branch {
  readonly schema: Schema;
  readonly issues: readonly Issue[];
}

/** What to report for a value that matches no branch of a union. */
export type UnionVerdict =
  | { readonly kind: 'type' }
  /** The mapping is an entry of the list that was expected. */
  | { readonly kind: 'entry' }
  | { readonly kind: 'values'; readonly values: readonly unknown[] }
  /** Report the issues of this branch. */
  | { readonly kind: 'branch'; readonly branch: Branch }
  /** Keys that are unknown to all branches with the best score. */
  | { readonly kind: 'unknown'; readonly keys: readonly string[]; readonly objects: readonly Schema[] }
  /** One of these keys is required. */
  | { readonly kind: 'choice'; readonly keys: readonly string[] }
  /** A key of one branch next to a key of another. */
  | { readonly kind: 'exclusive'; readonly key: string; readonly other: string };

/** Finds the union, under the wrappers of `schemas`, with as many branches as zod reported errors for. */
export function unionBranches(schemas: readonly Schema[], errors: readonly (readonly Issue[])[]): Branch[] {
  for (const schema of schemas) {
    const layers: Schema[] = [];
    alternatives(schema, layers);
    const options = layers
      .map((layer) => definition(layer).options)
      .find((each) => each?.length === errors.length);
    if (options !== undefined)
      return options.map((option, index) => ({ schema: option, issues: errors[index] ?? [] }));
  }
  return [];
}

/** Decides which branch the author intended, from the shape of the value and its keys. */
export function judgeUnion(branches: readonly Branch[], value: unknown): UnionVerdict {
  const fitting = branches.filter(({ schema }) =>
    alternatives(schema).some((each) => typeFits(each._zod.def.type, value)),
  );
  if (fitting.length === 0) return { kind: 'type' };
  if (isRecord(value)) {
    const keys = Object.keys(value);
    return isEntry(branches, keys) ? { kind: 'entry' } : judgeMappings(fitting, keys);
  }
  const detailed = fitting.find(({ issues }) => !issues.some((issue) => isRootLiteral(issue)));
  if (detailed !== undefined) return { kind: 'branch', branch: detailed };
  const values = fitting.flatMap(({ issues }) =>
    issues.flatMap((issue) => ('values' in issue ? issue.values : [])),
  );
  return typeof value === 'object' || values.every((each) => typeof each !== typeof value)
    ? { kind: 'type' }
    : { kind: 'values', values };
}

/** Whether all keys are those of the entries of a list, and none is known to a mapping. */
function isEntry(branches: readonly Branch[], keys: readonly string[]): boolean {
  const lists = branches
    .flatMap(({ schema }) => alternatives(schema))
    .flatMap((each) => definition(each).element ?? []);
  const [ofEntries, ofMappings] = [lists, branches.map(({ schema }) => schema)].map((schemas) =>
    keysOf(objectSchemas(schemas)),
  );
  return (
    keys.length > 0 &&
    keys.every((key) => ofEntries?.includes(key)) &&
    !keys.some((key) => ofMappings?.includes(key))
  );
}

function isRootLiteral(issue: Issue): boolean {
  return issue.code === 'invalid_value' && issue.path.length === 0;
}

function judgeMappings(branches: readonly Branch[], keys: readonly string[]): UnionVerdict {
  const scored = branches.map((branch) => ({ branch, score: score(branch, keys) }));
  const best = Math.max(...scored.map((each) => each.score));
  const winners = scored.filter((each) => each.score === best).map((each) => each.branch);
  const [winner] = winners;
  if (winner === undefined) return { kind: 'type' };
  const objects = objectSchemas(winners.map((each) => each.schema));
  if (winners.length > 1 && objects.length === winners.length) {
    const known = keysOf(objects);
    const unknown = keys.filter((key) => !known.includes(key));
    if (unknown.length > 0) return { kind: 'unknown', keys: unknown, objects };
    const needed = winners.map((each) => missingKey(each, keys));
    if (needed.every((key) => key !== undefined)) return { kind: 'choice', keys: [...new Set(needed)] };
  }
  return exclusiveKeys(winner, branches, keys) ?? { kind: 'branch', branch: winner };
}

/**
 * Known keys count most; a near miss counts almost as much; a different value of a discriminating key excludes the
 * branch.
 */
function score({ schema, issues }: Branch, keys: readonly string[]): number {
  const objects = objectSchemas([schema]);
  if (objects.length === 0) return -issues.length;
  const known = keysOf(objects);
  let total = 0;
  for (const key of keys) {
    if (known.includes(key)) total += 10;
    else if (nearest(key, known) !== undefined) total += 8;
  }
  // A wrong value deeper inside is a mistake in this branch.
  const literals = issues.filter(
    ({ code, path }) => code === 'invalid_value' && path.length === 1 && keys.includes(String(path[0])),
  );
  return total - 30 * literals.length;
}

/** The first key that the branch requires and the mapping lacks. */
function missingKey({ schema }: Branch, keys: readonly string[]): string | undefined {
  const [object] = objectSchemas([schema]);
  const shape = object && definition(object).shape;
  if (shape === undefined) return undefined;
  return Object.keys(shape).find((key) => shape[key] && !isOptional(shape[key]) && !keys.includes(key));
}

function exclusiveKeys(
  winner: Branch,
  branches: readonly Branch[],
  keys: readonly string[],
): UnionVerdict | undefined {
  const own = keysOf(objectSchemas([winner.schema]));
  const foreign = keys.filter((key) => !own.includes(key));
  for (const branch of branches) {
    const known = keysOf(objectSchemas([branch.schema]));
    const other = foreign.find((key) => known.includes(key));
    const key = keys.find((each) => own.includes(each) && !known.includes(each));
    if (other !== undefined && key !== undefined) return { kind: 'exclusive', key, other };
  }
  return undefined;
}

/** A key next to `key` that belongs to another branch, if some branch knows `key` itself. */
export function rivalOf(
  objects: readonly Schema[],
  key: string,
  present: readonly string[],
): string | undefined {
  const withKey = keysOf(objects.filter((each) => keysOf([each]).includes(key)));
  const without = keysOf(objects.filter((each) => !keysOf([each]).includes(key)));
  if (withKey.length === 0) return undefined;
  return present.find((each) => without.includes(each) && !withKey.includes(each));
}
