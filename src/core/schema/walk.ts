import { z } from 'zod';
import type { Path } from '../diagnostic.ts';
import { membersOf } from '../foreign.ts';

/** A schema of any kind. */
export type Schema = z.core.$ZodType;

interface Definition {
  readonly type: string;
  readonly innerType?: Schema;
  readonly in?: Schema;
  readonly out?: Schema;
  readonly options?: readonly Schema[];
  readonly left?: Schema;
  readonly right?: Schema;
  readonly shape?: Readonly<Record<string, Schema>>;
  readonly catchall?: Schema;
  readonly keyType?: Schema;
  readonly valueType?: Schema;
  readonly element?: Schema;
  readonly items?: readonly Schema[];
  readonly rest?: Schema | null;
  readonly entries?: Readonly<Record<string, string | number>>;
  readonly values?: readonly unknown[];
  readonly format?: string;
  readonly checks?: readonly { readonly _zod: { readonly def: { readonly format?: string } } }[];
}

/** The definition of `schema`, with the properties of any kind of schema as optional ones. */
export function definition(schema: Schema): Definition {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of zod have one definition per kind of schema
  return schema._zod.def as unknown as Definition;
}

/**
 * The schema inside optional, default, lazy and other wrappers, or the input side of a pipe; undefined if `schema` is
 * not a wrapper.
 */
function inner(schema: Schema): Schema | undefined {
  const def = definition(schema);
  // zod caches the result of the getter; calling the getter again could build a new schema each time.
  if (schema instanceof z.core.$ZodLazy) return schema._zod.innerType;
  // `z.preprocess` is a pipe that starts with a transform, which does not describe its input.
  if (def.type === 'pipe') return def.in && definition(def.in).type === 'transform' ? def.out : def.in;
  return def.innerType;
}

/**
 * The alternatives of `schema`, without wrappers: one schema, or all branches of a union. Adds every schema on the way
 * to `layers`, including wrappers, because each of them can have metadata.
 */
export function alternatives(schema: Schema, layers: Schema[] = []): Schema[] {
  layers.push(schema);
  const wrapped = inner(schema);
  if (wrapped !== undefined) return alternatives(wrapped, layers);
  const { options, left, right } = definition(schema);
  const parts = options ?? (left && right ? [left, right] : undefined);
  return parts === undefined ? [schema] : parts.flatMap((part) => alternatives(part, layers));
}

/** The schemas of the value at `segment` inside `schema`; empty if no value is allowed there. */
export function childSchemas(schema: Schema, segment: string | number): Schema[] {
  return alternatives(schema).flatMap((each) => {
    const def = definition(each);
    const own = def.shape && Object.hasOwn(def.shape, segment) ? def.shape[segment] : undefined;
    const item =
      typeof segment === 'number'
        ? (def.element ?? def.items?.[segment] ?? def.rest ?? undefined)
        : undefined;
    const child = own ?? def.catchall ?? def.valueType ?? item;
    return child === undefined || definition(child).type === 'never' ? [] : [child];
  });
}

/** The schemas that may apply at `path`, from all branches of the unions on the way. */
export function schemasAt(root: Schema, path: Path): Schema[] {
  return path.reduce<Schema[]>((at, segment) => at.flatMap((each) => childSchemas(each, segment)), [root]);
}

/** The object schemas among the alternatives of `schemas`. */
export function objectSchemas(schemas: readonly Schema[]): Schema[] {
  return schemas
    .flatMap((schema) => alternatives(schema))
    .filter((each) => definition(each).shape !== undefined);
}

/** Drops the object schemas whose literal fields, such as the discriminator of a union, do not match `value`. */
export function fittingObjects(schemas: readonly Schema[], value: unknown): Schema[] {
  const objects = objectSchemas(schemas);
  const members = membersOf(value);
  const fitting = objects.filter((each) =>
    Object.entries(definition(each).shape ?? {}).every(([key, field]) => {
      const values = definition(field).values;
      const given = members[key];
      return values === undefined || given === undefined || values.includes(given);
    }),
  );
  return fitting.length > 0 ? fitting : objects;
}

/** The keys of the object schemas, in schema order and without duplicates. */
export function keysOf(objects: readonly Schema[]): string[] {
  return [...new Set(objects.flatMap((each) => Object.keys(definition(each).shape ?? {})))];
}

/** Whether a key is optional. */
export function isOptional(schema: Schema): boolean {
  return schema._zod.optin === 'optional' || schema._zod.optin === 'defaulted';
}

/** Fields of `.meta()`, in addition to those that zod itself uses. */
interface SchemaMeta {
  /** The value is masked wherever it would be displayed. */
  readonly secret?: boolean;
  /** The first example is shown when the key is missing. */
  readonly examples?: readonly unknown[];
  /** For a mapping: keys that users look for in it, and what to write instead. */
  readonly elsewhere?: Readonly<Record<string, string>>;
  /** For a mapping: `{}` turns something on, so it is not clear what a key without a value means. */
  readonly isSwitch?: boolean;
  /** For a mapping: names that other programs use for its keys. */
  readonly foreignNames?: Readonly<Record<string, string>>;
}

/** `.meta()` of `schema` itself, without what it wraps. */
export function metaOf(schema: Schema): SchemaMeta {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- schemas of this program set these fields
  return (z.globalRegistry.get(schema) ?? {}) as SchemaMeta;
}

/** `.meta()` of `schema` and of all its wrappers and branches. */
export function layerMeta(schema: Schema): readonly SchemaMeta[] {
  const layers: Schema[] = [];
  alternatives(schema, layers);
  return layers.map(metaOf);
}

/** Whether `{}` turns something on. */
export const isSwitch = (schema: Schema): boolean => layerMeta(schema).some((meta) => meta.isSwitch === true);

/** The plain value at `path`, or undefined. */
export function valueAt(root: unknown, path: Path): unknown {
  return path.reduce<unknown>((at, segment) => {
    return at !== null && typeof at === 'object' && Object.hasOwn(at, segment)
      ? Reflect.get(at, segment)
      : undefined;
  }, root);
}
