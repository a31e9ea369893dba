import { isRecord, shownValue } from '../../core/foreign.ts';
import { displayWidth, escapeControls } from '../../core/render/width.ts';
import type { Run } from '../context.ts';
import { table } from '../proxy/print.ts';
import { type ShowOptions, showJson } from '../proxy/show-json.ts';

export const run: Run<ShowOptions> = (options, context) => showJson('/memory', textOf, options, context);

/** One line per figure, byte counts in MiB, followed by the bounds. The set of figures differs between gateways. */
function textOf(value: Readonly<Record<string, unknown>>): string {
  const { bounds, ...figures } = value;
  const hasBounds = Array.isArray(bounds) && bounds.length > 0 && bounds.every(isRecord);
  const main = print(rowsOf(hasBounds ? figures : value, ''));
  return hasBounds ? `${main}\n${print([['BOUND', 'USE', 'CAP'], ...bounds.map(boundRow)])}` : main;
}

function print(rows: readonly (readonly string[])[]): string {
  return table(
    rows.map((row) => row.map(escapeControls)),
    displayWidth,
  );
}

/**
 * `connections (default) 2 10000`: name and place, current use if known, maximum, and items dropped at the maximum.
 */
function boundRow({ name, at, used, max, dropped }: Readonly<Record<string, unknown>>): string[] {
  const shownName = shownValue(name);
  const isBytes = /bytes$/i.test(shownName);
  const shown = (amount: unknown): string => {
    if (typeof amount !== 'number') return '-';
    return isBytes ? mebibytes(amount) : String(amount);
  };
  const lost = typeof dropped === 'number' && dropped > 0 ? [`${dropped} dropped`] : [];
  return [typeof at === 'string' ? `${shownName} (${at})` : shownName, shown(used), shown(max), ...lost];
}

function rowsOf(value: unknown, path: string): string[][] {
  if (typeof value === 'object' && value !== null)
    return Object.entries(value).flatMap(([key, part]) => rowsOf(part, path === '' ? key : `${path}.${key}`));
  return value === null ? [] : [[path, typeof value === 'number' ? figure(value, path) : String(value)]];
}

/** Figures that are not bytes, by the last part of their names: the kernel also counts pages and faults. */
const COUNTS =
  /(?:^|[._])(?:stacks|objects|allocations|frees|faults?|count|ms|seconds|structures)$|(?:^|\.)(?:pg|workingset|thp|swpin|swpout|zswpin|zswpout|numa_|oom)\w*$|number_of_\w+$/;
/** Characters of the names that a gateway gives. */
const LONGEST_NAME = 200;
const BYTES = /^(?:allocation_stats|allocator|cgroup|smaps)\.|bytes$/i;
const MIB = 1024 * 1024;

function figure(value: number, path: string): string {
  if (path.length <= LONGEST_NAME && COUNTS.test(path)) return String(value);
  return BYTES.test(path) || Math.abs(value) >= 64 * 1024 ? mebibytes(value) : String(value);
}

/** One unit for all; small amounts have more digits, so that they differ from zero. */
function mebibytes(value: number): string {
  const amount = value / MIB;
  if (value !== 0 && Math.abs(amount) < 0.001) return '<0.001 MiB';
  return `${amount.toFixed(value !== 0 && Math.abs(amount) < 0.1 ? 3 : 1)} MiB`;
}
