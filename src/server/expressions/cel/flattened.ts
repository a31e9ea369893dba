import type { CelResult } from '../../kernel/expression.ts';
import { CelObject, type Value } from './values.ts';

/** What `flatten` returns: the log and the spans make a field of each member. Anywhere else it is the value itself. */
export class Flattened extends CelObject {
  readonly typeName = 'map';
  readonly value: Value;
  readonly isRecursive: boolean;

  constructor(value: Value, isRecursive: boolean) {
    super();
    this.value = value;
    this.isRecursive = isRecursive;
  }
}

/** Results that were flattened, and whether recursively. Not a member of the result, which clients could forge. */
const flattened = new WeakMap<object, boolean>();

export function markFlattened(result: CelResult, isRecursive: boolean): CelResult {
  if (typeof result === 'object' && result !== null) flattened.set(result, isRecursive);
  return result;
}

/** Fields per expression. Twice as many as a request may have header lines. */
const MAX_FIELDS = 256;

/** The fields of an added field: itself, or, after `flatten`, `name.key` for each member that is not null. */
export function fieldsOf(name: string, result: CelResult): [name: string, value: Exclude<CelResult, null>][] {
  const fields: [string, Exclude<CelResult, null>][] = [];
  collect(name, result, false, fields);
  return fields;
}

function collect(
  name: string,
  result: CelResult,
  inherited: boolean,
  fields: [string, Exclude<CelResult, null>][],
): void {
  if (result === null || fields.length >= MAX_FIELDS) return;
  const own = typeof result === 'object' ? flattened.get(result) : undefined;
  const isExpanded = own !== undefined || inherited;
  if (!isExpanded || typeof result !== 'object' || result instanceof Uint8Array) {
    fields.push([name, result]);
    return;
  }
  for (const [key, value] of Object.entries(result))
    collect(`${name}.${key}`, value, own ?? inherited, fields);
}
