import { isSensitiveName, REDACTED } from '../../../core/credentials.ts';
import { LIMITS } from '../../../core/limits.ts';
import { HeadersView } from '../../expressions/cel/headers-view.ts';
import { CelObject, CelStruct } from '../../expressions/cel/values.ts';

/** The size limit of one request state in a trace. */
export interface SizeBudget {
  /** Characters that may still be used. */
  left: number;
  /** Redacts known secrets in bytes before they are encoded as base64, where they could no longer be found. */
  readonly scrub?: ((text: string) => string) | undefined;
}

const MAX_DEPTH = 12;
/** Replaces the rest of a value that is too long or too deep. */
const ELLIPSIS = '…';

/** Names of object members that hold credentials. `max_tokens` does not match. */
const SECRET_MEMBER =
  /^(?:password|passwd|secret|client[-_]?secret|api[-_]?key|(?:access|refresh|id)[-_]?token|raw[-_]?token|private[-_]?key|credentials?)$/i;

/**
 * Converts an expression value to bounded JSON: strings are cut to `LIMITS.traceTextLength` characters and the
 * remaining budget, credentials redacted by member name, bytes encoded as base64. Undefined for a value that JSON
 * cannot represent. `names`: additional header names that hold credentials.
 */
export function toTraceJson(
  value: unknown,
  budget: SizeBudget,
  names: ReadonlySet<string>,
  depth = 0,
): unknown {
  switch (typeof value) {
    case 'string':
      return cut(value, budget);
    case 'number':
      return Number.isFinite(value) ? value : String(value);
    case 'boolean':
      return value;
    case 'bigint':
      return Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();
    case 'object':
      return value === null ? null : fromObject(value, budget, names, depth);
    default:
      return undefined;
  }
}

function cut(text: string, budget: SizeBudget): string {
  const room = Math.max(0, Math.min(LIMITS.traceTextLength, budget.left));
  budget.left -= Math.min(text.length, room);
  return text.length > room ? `${text.slice(0, room)}${ELLIPSIS}` : text;
}

function fromObject(value: object, budget: SizeBudget, names: ReadonlySet<string>, depth: number): unknown {
  if (value instanceof Uint8Array) return bytes(value, budget);
  if (depth >= MAX_DEPTH) return ELLIPSIS;
  if (Array.isArray(value)) {
    const items: unknown[] = [];
    for (const item of value) {
      if (budget.left <= 0) return [...items, ELLIPSIS];
      budget.left -= 2;
      items.push(toTraceJson(item, budget, names, depth + 1) ?? null);
    }
    return items;
  }
  if (value instanceof HeadersView) {
    const isSecret = (name: string): boolean => isSensitiveName(name, names);
    const fields = value.names().map((name): [string, unknown] => [name, value.get(name)]);
    return record(fields, isSecret, budget, names, depth);
  }
  if (value instanceof CelStruct) {
    const fields = value.fields().map((name): [string, unknown] => [name, value.field(name)]);
    return record(fields, never, budget, names, depth);
  }
  if (value instanceof CelObject) return cut(String(value), budget);
  const isSecret = (name: string): boolean => SECRET_MEMBER.test(name);
  if (value instanceof Map) {
    const entries = [...value].map(([key, item]): [string, unknown] => [String(key), item]);
    return record(entries, isSecret, budget, names, depth);
  }
  return record(Object.entries(value), isSecret, budget, names, depth);
}

const never = (): boolean => false;

function record(
  entries: readonly (readonly [string, unknown])[],
  isSecret: (name: string) => boolean,
  budget: SizeBudget,
  names: ReadonlySet<string>,
  depth: number,
): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [name, item] of entries) {
    if (item === undefined) continue;
    if (budget.left <= 0) {
      result[ELLIPSIS] = ELLIPSIS;
      break;
    }
    budget.left -= name.length + 4;
    const shown =
      isSecret(name) && item !== null ? redacted(item) : toTraceJson(item, budget, names, depth + 1);
    // `defineProperty`, because a member may be named `__proto__`.
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

function bytes(value: Uint8Array, budget: SizeBudget): string {
  const room = Math.max(0, Math.min(LIMITS.traceTextLength, Math.floor((budget.left * 3) / 4)));
  const kept = Buffer.from(value.buffer, value.byteOffset, Math.min(value.byteLength, room));
  budget.left -= Math.ceil((kept.length * 4) / 3);
  const { scrub } = budget;
  const clean = scrub === undefined ? kept : Buffer.from(scrub(kept.toString('latin1')), 'latin1');
  return clean.toString('base64');
}
