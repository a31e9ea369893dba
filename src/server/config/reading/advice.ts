import { z } from 'zod';
import { type Path, pathText } from '../../../core/diagnostic.ts';
import { membersOf } from '../../../core/foreign.ts';
import { exampleText } from '../../../core/schema/describe-types.ts';
import { isSwitchWord } from '../../../core/schema/mapping.ts';
import {
  alternatives,
  childSchemas,
  definition,
  isOptional,
  keysOf,
  layerMeta,
  metaOf,
  objectSchemas,
  type Schema,
  schemasAt,
} from '../../../core/schema/walk.ts';
import { completed, editDistance, ending, nearest, shortened } from '../../../core/suggest.ts';
import type { Places } from './places.ts';

/** A schema and the path where it applies: the root, or the matching branch of a union. */
export interface Base {
  readonly schema: Schema;
  readonly path: Path;
}

/** Advice about an unknown key. */
interface KeyAdvice {
  /** The known key that was probably meant. */
  readonly suggestion?: string;
  readonly help?: string;
  readonly note: string;
}

/** The schemas at `path`, which must lie inside `base`. */
export function schemasIn(base: Base, path: Path): Schema[] {
  return schemasAt(base.schema, path.slice(base.path.length));
}

/** Advice about the unknown `key` of the mapping at `path`, and its `value`; `objects` are the schemas of that mapping. */
export function adviseOnKey(
  { root, places }: { readonly root: Schema; readonly places: Places },
  objects: readonly Schema[],
  path: Path,
  key: string,
  value: unknown,
): KeyAdvice {
  const allowed = keysOf(objects);
  const note =
    allowed.length === 0 ? 'no fields are allowed here' : `fields allowed here: ${allowed.join(', ')}`;
  const elsewhere = objects
    .map((each) => metaOf(each).elsewhere ?? {})
    .find((each) => Object.hasOwn(each, key))?.[key];
  if (elsewhere !== undefined) return { help: elsewhere, note };
  const native = nativeName(objects, key);
  if (native !== undefined)
    return { suggestion: native, help: `the field is called \`${native}\` here`, note };
  const place = placeBelow(objects, key) ?? placeAbove(root, path, key);
  if (place !== undefined) return { help: `\`${key}\` belongs ${place}`, note };
  const suggestion = similar(key, allowed);
  if (suggestion !== undefined) {
    return { suggestion, help: `a field with a similar name exists: \`${suggestion}\``, note };
  }
  const below = similarBelow(objects, key);
  if (below !== undefined) return { help: `a field with a similar name exists ${below}`, note };
  const shown = places.ofKey(path, key, value);
  return shown === undefined ? { note } : { help: `\`${key}\` is a field of ${shown}`, note };
}

/** A key that `key` is a shorter or longer form of, or resembles. Few letters that differ count more than a beginning. */
function similar(key: string, allowed: readonly string[]): string | undefined {
  const near = nearest(key, allowed);
  if (near !== undefined && editDistance(key.toLowerCase(), near.toLowerCase()) <= 2) return near;
  return completed(key, allowed) ?? shortened(key, allowed) ?? near ?? ending(key, allowed);
}

/** The key that other programs call `key`. */
function nativeName(objects: readonly Schema[], key: string): string | undefined {
  const names = objects
    .map((each) => metaOf(each).foreignNames ?? {})
    .find((each) => Object.hasOwn(each, key));
  return names?.[key];
}

/** The sibling under which the key is known, for example for a policy that was written next to `policies`. */
function placeBelow(objects: readonly Schema[], key: string): string | undefined {
  const parent = keysOf(objects).find((sibling) => keysBelow(objects, sibling).includes(key));
  return parent === undefined ? undefined : `under \`${parent}\``;
}

function similarBelow(objects: readonly Schema[], key: string): string | undefined {
  for (const sibling of keysOf(objects)) {
    const near = nearest(key, keysBelow(objects, sibling));
    if (near !== undefined) return `under \`${sibling}\`: \`${near}\``;
  }
  return undefined;
}

function keysBelow(objects: readonly Schema[], sibling: string): string[] {
  return keysOf(objectSchemas(objects.flatMap((each) => childSchemas(each, sibling))));
}

/** The enclosing mapping in which the key is known, for example for a key that is indented too far. */
function placeAbove(root: Schema, path: Path, key: string): string | undefined {
  for (let depth = path.length - 1; depth >= 0; depth--) {
    const above = path.slice(0, depth);
    if (!keysOf(objectSchemas(schemasAt(root, above))).includes(key)) continue;
    return depth === 0 ? 'at the top level' : `in \`${pathText(above)}\``;
  }
  return undefined;
}

/** How to write the mapping that is expected instead of another value. */
interface MappingAdvice {
  readonly help: string;
  readonly notes: readonly string[];
}

/**
 * Advice for a value where one of `schemas` expects a mapping; undefined if none of them has named keys.
 *
 * @param value The value, if it may be displayed: the example puts it under the key that accepts it.
 */
export function mappingAdvice(schemas: readonly Schema[], value: unknown): MappingAdvice | undefined {
  const objects = objectSchemas(schemas);
  const keys = keysOf(objects);
  if (keys.length === 0) return undefined;
  const field = (key: string): Schema | undefined =>
    objects.map((each) => definition(each).shape?.[key]).find((schema) => schema !== undefined);
  // The default of the mapping shows its usual key; required keys come next.
  const usual = Object.keys(defaultOf(schemas) ?? {});
  const needed = keys.filter((key) => {
    const schema = field(key);
    return schema !== undefined && !isOptional(schema);
  });
  const ranked = [...new Set([...usual, ...needed, ...keys])];
  const takers = isPlainWord(value) ? ranked.filter((key) => accepts(field(key), value)) : [];
  // A value that could be a misplaced secret is not repeated.
  const taking = takers.some((key) => isSecret(field(key))) ? undefined : takers[0];
  const [first = ''] = ranked;
  const firstField = field(first);
  const example =
    taking === undefined
      ? `${first}:${firstField === undefined ? '' : exampleText(firstField)}`
      : `${taking}: ${String(value)}`;
  return {
    help: `write a mapping, such as \`{ ${example} }\`${isSwitchWord(value) ? ', or delete the key' : ''}`,
    notes: [`fields allowed here: ${keys.join(', ')}`],
  };
}

function accepts(schema: Schema | undefined, value: unknown): boolean {
  return schema !== undefined && z.safeParse(schema, value).success;
}

function isSecret(schema: Schema | undefined): boolean {
  return schema !== undefined && layerMeta(schema).some(({ secret }) => secret === true);
}

/** Text with a space is often more than one value: a command with its arguments. */
function isPlainWord(value: unknown): boolean {
  return (
    ['string', 'number', 'boolean'].includes(typeof value) &&
    /^[\w./:-]{1,60}$/.test(String(value)) &&
    !isSwitchWord(value)
  );
}

function defaultOf(schemas: readonly Schema[]): object | undefined {
  const layers: Schema[] = [];
  for (const schema of schemas) alternatives(schema, layers);
  return layers
    .map((layer) => membersOf(layer._zod.def)['defaultValue'])
    .find((value): value is object => typeof value === 'object' && value !== null);
}

/** Advice for a value where a mapping with names of the user's choice is expected, such as variables or headers. */
export function namesAdvice(
  schemas: readonly Schema[],
  key: string,
  value: unknown,
): { readonly help: string } | undefined {
  const records = schemas
    .flatMap((schema) => alternatives(schema))
    .filter((each) => definition(each).type === 'record');
  if (records.length === 0) return undefined;
  const isPair = (each: unknown): boolean => typeof each === 'string' && /^[\w.-]+=/.test(each);
  const texts = Array.isArray(value) ? value : [value];
  return {
    help: `write a mapping, such as \`${key}: { NAME: value }\`${texts.some(isPair) ? ', instead of `NAME=value`' : ''}`,
  };
}
