import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { jsonIn, membersOf, numberIn, textIn } from '../../core/foreign.ts';
import { escapeControls } from '../../core/log.ts';
import { displayWidth } from '../../core/render/width.ts';
import { type UsageSums, usageGroupsIn } from '../../core/usage.ts';
import type { Run } from '../context.ts';
import { type AdminOptions, adminAddress } from '../proxy/address.ts';
import { ask, notAnAdmin } from '../proxy/admin-client.ts';
import { print, table, widest } from '../proxy/print.ts';
import { spanOption } from '../proxy/span.ts';

interface Options extends AdminOptions {
  readonly by: string;
  readonly since: string;
  readonly output: 'table' | 'json' | 'csv';
}

interface Usage {
  readonly by: readonly string[];
  readonly rows: readonly (UsageSums & { readonly group: Readonly<Record<string, string>> })[];
  readonly total: UsageSums;
  readonly isCut: boolean;
}

const SUMS = [
  'requests',
  'errors',
  'refused',
  'inputTokens',
  'outputTokens',
  'cachedInputTokens',
  'costUsd',
] as const;
const TITLES = ['REQUESTS', 'ERRORS', 'REFUSED', 'INPUT', 'OUTPUT', 'CACHED', 'USD'];

/** Prints what the gateway has recorded of usage. */
export const run: Run<Options> = async (options, context) => {
  await spanOption('--since', options.since);
  const groups = usageGroupsIn(options.by);
  if (typeof groups === 'string') throw new CommandError('usage', `--${groups}`);
  const address = adminAddress(options, context);
  const query = new URLSearchParams({ by: options.by, since: options.since });
  const { body } = await ask(address, { method: 'GET', path: `/api/usage?${query}` });
  const text = body.toString('utf8');
  const usage = parsed(text);
  if (usage === undefined) throw notAnAdmin(address.shown, 'GET /api/usage returns something else');
  const format = { json: () => `${text}\n`, csv: () => csv(usage), table: () => shown(usage, options) };
  await print(context.stdout, [format[options.output]()]);
  if (usage.isCut)
    throw new CommandError(
      'not_ok',
      'there are more rows than shown',
      'use a shorter --since, or fewer groups in --by',
    );
  return EXIT_CODES.ok.code;
};

function parsed(text: string): Usage | undefined {
  const { by, rows, total, isCut } = membersOf(jsonIn(text));
  if (!Array.isArray(by) || !by.every((name) => typeof name === 'string') || !Array.isArray(rows))
    return undefined;
  return { by, rows: rows.map(rowIn), total: sumsIn(total), isCut: isCut === true };
}

/** A row of a gateway of another version may lack members: they are shown as nothing and 0. */
function rowIn(row: unknown): Usage['rows'][number] {
  const group = Object.entries(membersOf(membersOf(row)['group'])).map(([name, value]) => [
    name,
    textIn(value),
  ]);
  return { group: Object.fromEntries(group), ...sumsIn(row) };
}

function sumsIn(value: unknown): UsageSums {
  const members = membersOf(value);
  const sum = (name: string): number => numberIn(members[name]) ?? 0;
  const cost = textIn(members['costUsd']);
  return {
    requests: sum('requests'),
    errors: sum('errors'),
    refused: sum('refused'),
    inputTokens: sum('inputTokens'),
    outputTokens: sum('outputTokens'),
    cachedInputTokens: sum('cachedInputTokens'),
    costUsd: /^-?\d+(?:\.\d+)?$/.test(cost) ? cost : '0',
  };
}

function shown({ by, rows, total }: Usage, { since }: Options): string {
  if (rows.length === 0) return `no requests since ${escapeControls(since)}\n`;
  // `toLocaleString` would make one for each number.
  const counts = new Intl.NumberFormat('en-US');
  const cells = (sums: UsageSums): string[] =>
    SUMS.map((name) => (name === 'costUsd' ? dollars(sums.costUsd) : counts.format(sums[name])));
  const lines = [
    [...by.map((name) => name.toUpperCase()), ...TITLES],
    ...rows.map((row) => [...by.map((name) => escapeControls(row.group[name] || '-')), ...cells(row)]),
    [...by.map((_, index) => (index === 0 ? 'total' : '')), ...cells(total)],
  ];
  return table(rightAligned(lines, by.length), displayWidth);
}

/** Numbers end in the same column. */
function rightAligned(lines: readonly string[][], first: number): string[][] {
  const widths = TITLES.map((_, index) => widest(lines, first + index, ({ length }) => length));
  return lines.map((line) =>
    line.map((cell, index) => (index < first ? cell : cell.padStart(widths[index - first] ?? 0))),
  );
}

/** Cents, or as many digits as an amount below a cent has. */
function dollars(amount: string): string {
  const value = Number(amount);
  return value === 0 || value >= 0.01 ? value.toFixed(2) : value.toPrecision(2);
}

/** RFC 4180, with the exact amounts. */
function csv({ by, rows }: Usage): string {
  const lines = [
    [...by, ...SUMS],
    ...rows.map((row) => [
      ...by.map((name) => row.group[name] ?? ''),
      ...SUMS.map((name) => String(row[name])),
    ]),
  ];
  return lines.map((line) => `${line.map(field).join(',')}\r\n`).join('');
}

/** A spreadsheet would execute a field that begins with one of these signs. */
function field(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
