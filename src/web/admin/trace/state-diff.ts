import { isRecord } from '../../../core/foreign.ts';
import { readable } from '../../../core/trace/request-line.ts';

/** One value that a step changed, by its path: `request.headers["x-user"]`. */
export interface Change {
  readonly path: string;
  readonly kind: 'added' | 'removed' | 'changed';
  readonly before: string;
  readonly after: string;
}

type State = Readonly<Record<string, unknown>>;

/** Maximum number of changes that are displayed. */
const MOST = 500;

/** Compares two states value by value; bodies are compared in decoded form. */
export function changesBetween(before: State | undefined, after: State | undefined): Change[] {
  const old = flattened(before);
  const now = flattened(after);
  const paths = [...new Set([...old.keys(), ...now.keys()])].sort();
  return paths
    .filter((path) => old.get(path) !== now.get(path))
    .slice(0, MOST)
    .map((path) => ({
      path,
      kind: !old.has(path) ? 'added' : now.has(path) ? 'changed' : 'removed',
      before: old.get(path) ?? '',
      after: now.get(path) ?? '',
    }));
}

function flattened(state: State | undefined): Map<string, string> {
  const values = new Map<string, string>();
  const walk = (value: unknown, path: string): void => {
    if (isRecord(value) && Object.keys(value).length > 0)
      for (const [name, member] of Object.entries(value)) walk(member, joined(path, name));
    else if (Array.isArray(value) && value.length > 0)
      for (const [index, item] of value.entries()) walk(item, `${path}[${index}]`);
    else values.set(path, JSON.stringify(value) ?? '');
  };
  if (state !== undefined) walk(readable(state), '');
  return values;
}

function joined(path: string, name: string): string {
  if (!/^[A-Za-z_]\w*$/.test(name)) return `${path}[${JSON.stringify(name)}]`;
  return path === '' ? name : `${path}.${name}`;
}
