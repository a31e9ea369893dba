import type { z } from 'zod';
import type { Path } from '../../core/diagnostic.ts';
import { membersOf } from '../../core/foreign.ts';
import { configSchema } from './schema.ts';

/** What may be written at a place of the configuration, for completion in editors. */
export interface SchemaHint {
  /** Description of the place itself. */
  readonly description?: string;
  /** Keys of a mapping; empty for other values, and for mappings whose keys are names that the user chooses. */
  readonly keys: readonly KeyHint[];
  /** Values, if only certain ones are allowed. */
  readonly values: readonly string[];
}

export interface KeyHint {
  readonly name: string;
  readonly description?: string;
  /** Whether its value is a mapping, a list or neither. */
  readonly kind: 'mapping' | 'list' | 'value';
}

type Schema = z.core.$ZodType;

/**
 * Looks up a path in the schema of the configuration file. Alternatives at one place are combined. Walks the schema
 * itself: its JSON Schema has 6 MB and takes a second to generate.
 */
export function schemaAt(path: Path): SchemaHint {
  let places: readonly Schema[] = [configSchema];
  for (const segment of path)
    places = places.flatMap(alternatives).flatMap((place) => within(place, segment));
  const found = places.flatMap(alternatives);
  const keys = new Map<string, KeyHint>();
  for (const place of found)
    for (const [name, member] of Object.entries(defOf(place).shape ?? {}))
      if (!keys.has(name)) keys.set(name, { name, ...described([member]), kind: kindOf(member) });
  const values = new Set(found.flatMap(valuesOf));
  return { ...described(places), keys: [...keys.values()], values: [...values] };
}

/** The members of Zod's definitions that are read here, of any kind of schema. */
interface Def {
  readonly type: string;
  readonly innerType?: Schema;
  readonly in?: Schema;
  readonly out?: Schema;
  readonly getter?: () => Schema;
  readonly options?: readonly Schema[];
  readonly left?: Schema;
  readonly right?: Schema;
  readonly shape?: Readonly<Record<string, Schema>>;
  readonly element?: Schema;
  readonly valueType?: Schema;
  readonly entries?: Readonly<Record<string, string | number>>;
  readonly values?: readonly unknown[];
}

const defOf = ({ _zod }: Schema): Def => _zod.def as Def;

/** The schemas that a value may follow: without wrappers, one per member of a union. */
function alternatives(schema: Schema): readonly Schema[] {
  const { type, innerType, in: input, out, getter, options, left, right } = defOf(schema);
  if (innerType !== undefined) return alternatives(innerType);
  // What is written goes in; a preprocessing step accepts anything, so what it produces says more.
  if (type === 'pipe' && input !== undefined && out !== undefined)
    return alternatives(defOf(input).type === 'transform' ? out : input);
  if (type === 'lazy' && getter !== undefined) return alternatives(getter());
  if (type === 'intersection' && left !== undefined && right !== undefined)
    return [...alternatives(left), ...alternatives(right)];
  return options === undefined ? [schema] : options.flatMap(alternatives);
}

function within(schema: Schema, segment: string | number): readonly Schema[] {
  const { shape, element, valueType } = defOf(schema);
  if (typeof segment === 'number') return element === undefined ? [] : [element];
  const member = shape === undefined || !Object.hasOwn(shape, segment) ? undefined : shape[segment];
  return [member ?? valueType].filter((each) => each !== undefined);
}

function valuesOf(schema: Schema): readonly string[] {
  const { type, entries, values } = defOf(schema);
  if (type === 'boolean') return ['true', 'false'];
  return [...Object.values(entries ?? {}), ...(type === 'literal' ? (values ?? []) : [])].map(String);
}

function kindOf(schema: Schema): KeyHint['kind'] {
  const defs = alternatives(schema).map(defOf);
  if (defs.every(({ shape, valueType }) => shape !== undefined || valueType !== undefined)) return 'mapping';
  return defs.every(({ element }) => element !== undefined) ? 'list' : 'value';
}

/** The first description, from the outside in: wrappers such as `optional` may carry it. */
function described(schemas: readonly Schema[]): { description?: string } {
  for (const schema of schemas) {
    const { description } = membersOf(schema);
    if (typeof description === 'string') return { description };
    const { innerType, in: input, out } = defOf(schema);
    const inner = described([innerType, input, out].filter((each) => each !== undefined));
    if (inner.description !== undefined) return inner;
  }
  return {};
}
