import { isSensitiveName, REDACTED } from '../credentials.ts';
import type { Path } from '../diagnostic.ts';
import { secretPaths } from './secrets.ts';
import type { Schema } from './walk.ts';

/**
 * A copy of a checked value in which everything that its schema marks as secret is replaced, and every text whose own
 * key is the name of a credential, such as a header that is set.
 */
export function withoutSecrets(schema: Schema, value: unknown): unknown {
  const secret = new Set(secretPaths(schema, value).map((path) => JSON.stringify(path)));
  return copy(value, [], secret);
}

function copy(value: unknown, path: Path, secret: ReadonlySet<string>): unknown {
  if (secret.has(JSON.stringify(path))) return REDACTED;
  if (typeof value === 'string' && isSensitiveName(String(path.at(-1) ?? ''))) return REDACTED;
  if (Array.isArray(value)) return value.map((item, index) => copy(item, [...path, index], secret));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]) =>
      item === undefined ? [] : [[key, copy(item, [...path, key], secret)]],
    ),
  );
}
