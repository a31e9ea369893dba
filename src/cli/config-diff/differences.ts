import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { Path } from '../../core/diagnostic.ts';
import { entryIn, isRecord, membersOf, stringIn } from '../../core/foreign.ts';
import { type Schema, schemasAt } from '../../core/schema/walk.ts';

/** One difference between two configurations. */
export interface Difference {
  readonly kind: 'added' | 'removed' | 'changed' | 'moved';
  /** Path in the file that has the value; the older one if both have. */
  readonly path: Path;
  /** As people write it: entries of lists by their names. */
  readonly shown: string;
  /** Absent if there is none. */
  readonly before?: unknown;
  readonly after?: unknown;
  /** Where the value is in the newer file. */
  readonly afterPath: Path;
}

type Json = Readonly<Record<string, unknown>>;

interface Place {
  readonly path: Path;
  readonly afterPath: Path;
  readonly shown: string;
}

/**
 * The differences in meaning between two parsed configurations. Order of keys, comments and notation do not matter, nor
 * does a key that is set to its default. Entries of a list are compared by their names, if all have one.
 */
export function differencesOf(before: unknown, after: unknown, schema: Schema): readonly Difference[] {
  const root: Place = { path: [], afterPath: [], shown: '' };
  return compare(before ?? {}, after ?? {}, root).filter((each) => !isDefault(each, schema));
}

function compare(before: unknown, after: unknown, place: Place): Difference[] {
  if (isDeepStrictEqual(before, after)) return [];
  if (before === undefined) return [{ kind: 'added', ...place, path: place.afterPath, after }];
  if (after === undefined) return [{ kind: 'removed', ...place, before }];
  if (isRecord(before) && isRecord(after)) return compareObjects(before, after, place);
  if (Array.isArray(before) && Array.isArray(after)) return compareLists(before, after, place);
  return [{ kind: 'changed', ...place, before, after }];
}

function compareObjects(before: Json, after: Json, { path, afterPath, shown }: Place): Difference[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key) =>
    compare(entryIn(before, key), entryIn(after, key), {
      path: [...path, key],
      afterPath: [...afterPath, key],
      shown: shown === '' ? key : `${shown}.${key}`,
    }),
  );
}

function compareLists(before: readonly unknown[], after: readonly unknown[], place: Place): Difference[] {
  const { path, afterPath, shown } = place;
  const [names, afterNames] = [namesOf(before), namesOf(after)];
  const at = (index: number, afterIndex: number, label: string | number): Place => ({
    path: [...path, index],
    afterPath: [...afterPath, afterIndex],
    shown: `${shown}[${label}]`,
  });
  if (names === undefined || afterNames === undefined)
    return Array.from({ length: Math.max(before.length, after.length) }, (_, index) =>
      compare(before[index], after[index], at(index, index, index)),
    ).flat();
  const common = names.filter((name) => afterNames.includes(name));
  const isMoved = !isDeepStrictEqual(
    common,
    afterNames.filter((name) => names.includes(name)),
  );
  const differences = [...new Set([...names, ...afterNames])].flatMap((name) => {
    const [index, afterIndex] = [names.indexOf(name), afterNames.indexOf(name)];
    return compare(before[index], after[afterIndex], at(index, afterIndex, name));
  });
  return isMoved
    ? [...differences, { kind: 'moved', ...place, before: names, after: afterNames }]
    : differences;
}

/** The names of all entries, if they all have one of their own. */
function namesOf(list: readonly unknown[]): readonly string[] | undefined {
  const names = list.flatMap((each) => stringIn(membersOf(each)['name']) ?? []);
  return names.length === list.length && new Set(names).size === names.length ? names : undefined;
}

/** Whether a key was only added or removed with its default as value. */
function isDefault({ kind, path, before, after }: Difference, schema: Schema): boolean {
  if (kind !== 'added' && kind !== 'removed') return false;
  return schemasAt(schema, path).some((each) => {
    const [absent, given] = [z.safeParse(each, undefined), z.safeParse(each, before ?? after)];
    return (
      absent.success &&
      given.success &&
      absent.data !== undefined &&
      isDeepStrictEqual(absent.data, given.data)
    );
  });
}
