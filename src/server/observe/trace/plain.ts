import { isSensitiveName, REDACTED } from '../../../core/credentials.ts';
import { LIMITS } from '../../../core/limits.ts';
import { HeadersView } from '../../expressions/cel/headers-view.ts';
import { CelObject, CelStruct } from '../../expressions/cel/values.ts';

/** Characters that a trace may still take for one state. */
export interface Allowance {
  left: number;
  /** Takes known secrets out of bytes, whose base64 nobody could search. */
  readonly scrub?: ((text: string) => string) | undefined;
}

const MAX_DEPTH = 12;
/** What stands for the rest of a value that is too long or too deep. */
const MORE = '…';

/** Members of any object that are credentials by their name. `max_tokens` is none. */
const SECRET_MEMBER =
  /^(?:password|passwd|secret|client[-_]?secret|api[-_]?key|(?:access|refresh|id)[-_]?token|raw[-_]?token|private[-_]?key|credentials?)$/i;

/**
 * A value of expressions as bounded JSON: texts cut, credentials redacted by name, bytes as base64. Undefined for what
 * JSON has no form for. `names`: further header names that hold credentials.
 */
export function plain(value: unknown, allowance: Allowance, names: ReadonlySet<string>, depth = 0): unknown {
  switch (typeof value) {
    case 'string':
      return cut(value, allowance);
    case 'number':
      return Number.isFinite(value) ? value : String(value);
    case 'boolean':
      return value;
    case 'bigint':
      return Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();
    case 'object':
      return value === null ? null : fromObject(value, allowance, names, depth);
    default:
      return undefined;
  }
}

function cut(text: string, allowance: Allowance): string {
  const room = Math.max(0, Math.min(LIMITS.traceTextLength, allowance.left));
  allowance.left -= Math.min(text.length, room);
  return text.length > room ? `${text.slice(0, room)}${MORE}` : text;
}

function fromObject(value: object, allowance: Allowance, names: ReadonlySet<string>, depth: number): unknown {
  if (value instanceof Uint8Array) return bytes(value, allowance);
  if (depth >= MAX_DEPTH) return MORE;
  if (Array.isArray(value)) {
    const items: unknown[] = [];
    for (const item of value) {
      if (allowance.left <= 0) return [...items, MORE];
      allowance.left -= 2;
      items.push(plain(item, allowance, names, depth + 1) ?? null);
    }
    return items;
  }
  if (value instanceof HeadersView) {
    const isSecret = (name: string): boolean => isSensitiveName(name, names);
    const fields = value.names().map((name): [string, unknown] => [name, value.get(name)]);
    return record(fields, isSecret, allowance, names, depth);
  }
  if (value instanceof CelStruct) {
    const fields = value.fields().map((name): [string, unknown] => [name, value.field(name)]);
    return record(fields, never, allowance, names, depth);
  }
  if (value instanceof CelObject) return cut(String(value), allowance);
  const isSecret = (name: string): boolean => SECRET_MEMBER.test(name);
  if (value instanceof Map) {
    const entries = [...value].map(([key, item]): [string, unknown] => [String(key), item]);
    return record(entries, isSecret, allowance, names, depth);
  }
  return record(Object.entries(value), isSecret, allowance, names, depth);
}

const never = (): boolean => false;

function record(
  entries: readonly (readonly [string, unknown])[],
  isSecret: (name: string) => boolean,
  allowance: Allowance,
  names: ReadonlySet<string>,
  depth: number,
): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [name, item] of entries) {
    if (item === undefined) continue;
    if (allowance.left <= 0) {
      result[MORE] = MORE;
      break;
    }
    allowance.left -= name.length + 4;
    const shown = isSecret(name) && item !== null ? redacted(item) : plain(item, allowance, names, depth + 1);
    // A member called `__proto__` is data like any other.
    if (shown !== undefined)
      Object.defineProperty(result, name, {
        value: shown,
        enumerable: true,
        writable: true,
        configurable: true,
      });
  }
  return result;
}

const redacted = (value: unknown): unknown => (Array.isArray(value) ? value.map(() => REDACTED) : REDACTED);

function bytes(value: Uint8Array, allowance: Allowance): string {
  const room = Math.max(0, Math.min(LIMITS.traceTextLength, Math.floor((allowance.left * 3) / 4)));
  const kept = Buffer.from(value.buffer, value.byteOffset, Math.min(value.byteLength, room));
  allowance.left -= Math.ceil((kept.length * 4) / 3);
  const { scrub } = allowance;
  const clean = scrub === undefined ? kept : Buffer.from(scrub(kept.toString('latin1')), 'latin1');
  return clean.toString('base64');
}
