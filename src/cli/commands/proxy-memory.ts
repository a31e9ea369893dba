import { displayWidth, escapeControls } from '../../core/render/width.ts';
import type { Run } from '../program.ts';
import { isObject } from '../proxy/dump-parts.ts';
import { table } from '../proxy/print.ts';
import { type ShowOptions, showJson } from '../proxy/show-json.ts';

export const run: Run<ShowOptions> = (options, context) => showJson('/memory', textOf, options, context);

/** A line for every figure; those that are bytes, as MiB. Which there are differs from gateway to gateway. */
function textOf(value: unknown): string {
  return table(
    rowsOf(value, '').map((row) => row.map(escapeControls)),
    displayWidth,
  );
}

function rowsOf(value: unknown, path: string): string[][] {
  if (isObject(value))
    return Object.entries(value).flatMap(([key, part]) => rowsOf(part, path === '' ? key : `${path}.${key}`));
  return value === null ? [] : [[path, typeof value === 'number' ? figure(value, path) : String(value)]];
}

const COUNTS =
  /(?:^|[._])(?:stacks|objects|allocations|frees|faults?|pgfault|pgmajfault|count|ms|seconds|comparable)(?:$|[._])/;
const MIB = 1024 * 1024;

function figure(value: number, path: string): string {
  if (COUNTS.test(path) || Math.abs(value) < 64 * 1024) return String(value);
  return `${(value / MIB).toFixed(1)} MiB`;
}
