import { isSensitiveName, isTokenCount, isTokenCountName, REDACTED } from '../credentials.ts';
import type { Path, Range } from '../diagnostic.ts';
import { nearest } from '../suggest.ts';
import type { YamlSource } from '../yaml/source.ts';
import { typeFits } from './describe-types.ts';
import {
  alternatives,
  childSchemas,
  keysOf,
  layerMeta,
  metaOf,
  objectSchemas,
  type Schema,
  schemasAt,
} from './walk.ts';

/**
 * The paths of all texts and numbers in `value` that `schema` marks with `.meta({ secret: true })`. A mark on a mapping
 * or list covers everything in it but what is marked with `false`. Unknown keys that resemble a secret one count too, since they are most likely
 * misspelled.
 */
export function secretPaths(schema: Schema, value: unknown): Path[] {
  const found: Path[] = [];
  collect([schema], undefined, value, [], found);
  return found;
}

/** What of a value is secret: everything, or all but numbers of tokens, below an unknown key such as `maxTokens`. */
type Secret = 'all' | 'no count' | undefined;

function collect(
  schemas: readonly Schema[],
  secret: Secret,
  value: unknown,
  path: Path,
  found: Path[],
): void {
  const marked: Secret = schemas.some((schema) => isMarked(schema, value))
    ? 'all'
    : schemas.some(layersOpen)
      ? undefined
      : secret;
  if (value === null || typeof value !== 'object') {
    if (typeof value !== 'string' && typeof value !== 'number') return;
    if (marked === 'all' || (marked === 'no count' && !isTokenCount(value))) found.push(path);
    return;
  }
  const entries: [string | number, unknown][] = Array.isArray(value)
    ? [...value.entries()]
    : Object.entries(value);
  const objects = Array.isArray(value) ? [] : objectSchemas(schemas);
  for (const [key, child] of entries) {
    const inside = schemas.flatMap((schema) => childSchemas(schema, key));
    const of =
      inside.length === 0 && marked !== 'all' ? suspicionOf(schemas, objects, String(key), marked) : marked;
    collect(inside, of, child, [...path, key], found);
  }
}

/** What of the value of an unknown key is secret. */
function suspicionOf(
  schemas: readonly Schema[],
  objects: readonly Schema[],
  key: string,
  marked: Secret,
): Secret {
  if (schemas.some(layersMarked)) return 'all';
  // Below an unknown key there are no schemas.
  const isSuspicious = marked === 'no count' ? SECRET_NAME.test(key) : isSuspect(objects, key);
  if (!isSuspicious) return marked;
  return isTokenCountName(key) ? 'no count' : 'all';
}

/**
 * Whether the mark on `schema` applies to `value`: in `text | { file }`, a mark on the text does not cover a mapping,
 * but it covers a list, which is not allowed there and most likely contains the secret.
 */
function isMarked(schema: Schema, value: unknown): boolean {
  if (metaOf(schema).secret === true) return true;
  const branches = alternatives(schema);
  const fitting = branches.filter((branch) => typeFits(branch._zod.def.type, value));
  const isOneOfSeveral = branches.length > 1 && fitting.length > 0;
  return isOneOfSeveral ? fitting.some(layersMarked) : layersMarked(schema);
}

/** Whether the value at `path` is secret, by a mark on its schema or on an enclosing one. */
export function isSecretAt(root: Schema, path: Path): boolean {
  return (
    path.some((_, depth) => schemasAt(root, path.slice(0, depth + 1)).some(layersMarked)) &&
    !schemasAt(root, path).some(layersOpen)
  );
}

function layersMarked(schema: Schema): boolean {
  return layerMeta(schema).some((meta) => meta.secret === true);
}

/** Whether it is not a secret, although it is in one: `.meta({ secret: false })`, such as the path of a file. */
function layersOpen(schema: Schema): boolean {
  return layerMeta(schema).some((meta) => meta.secret === false);
}

const SECRET_NAME = /key|secret|token|passw|credential/i;

function isSuspect(objects: readonly Schema[], key: string): boolean {
  if (objects.length === 0) return false;
  if (SECRET_NAME.test(key)) return true;
  const near = nearest(key, keysOf(objects));
  if (near === undefined) return false;
  return objects.flatMap((each) => childSchemas(each, near)).some(layersMarked);
}

// The bounds keep the search linear on hostile lines.
const SECRET_LINE =
  /^[ \t]{0,128}(?:-[ \t]{1,8}){0,8}["']?[\w.-]{0,64}(?:key|secret|token|passw\w{0,8}|credentials?)["']?[ \t]*:[ \t]+(\S.*)$/gim;

/**
 * The ranges of the secrets in a file, for masking excerpts. References such as `$API_KEY` stay readable. Text that is
 * not valid YAML has no paths, so every value is masked whose key indicates a credential.
 */
export function secretRanges(schema: Schema, source: YamlSource): Range[] {
  if (source.value === undefined) {
    return [...source.text.matchAll(SECRET_LINE)].map((match) => {
      const end = match.index + match[0].length;
      return source.range(end - (match[1] ?? '').length, end);
    });
  }
  return secretPaths(schema, source.value)
    .filter((path) => source.variableAt(path) === undefined)
    .map((path) => source.valueRange(path));
}

/**
 * Copies a checked value and replaces everything that its schema marks as secret, and every text whose key is the name
 * of a credential, such as a header that is set.
 */
export function withoutSecrets(schema: Schema, value: unknown): unknown {
  const secret = new Set(secretPaths(schema, value).map((path) => JSON.stringify(path)));
  return copyWithoutSecrets(value, [], secret);
}

function copyWithoutSecrets(value: unknown, path: Path, secret: ReadonlySet<string>): unknown {
  if (secret.has(JSON.stringify(path))) return REDACTED;
  if (typeof value === 'string' && isSensitiveName(String(path.at(-1) ?? ''))) return REDACTED;
  if (Array.isArray(value))
    return value.map((item, index) => copyWithoutSecrets(item, [...path, index], secret));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]) =>
      item === undefined ? [] : [[key, copyWithoutSecrets(item, [...path, key], secret)]],
    ),
  );
}
