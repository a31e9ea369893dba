import { LIMITS } from '../../core/limits.ts';
import { integer, number, optionalText, time } from '../../core/sql-row.ts';
import { USAGE_GROUPS, type UsageGroup, type UsageSums } from '../../core/usage.ts';
import type { Database, SqlRow, SqlValue } from '../kernel/database.ts';
import { usdOf } from './money.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** The column of each. Days begin at midnight UTC. */
const GROUPS: Readonly<Record<UsageGroup, string>> = {
  key: 'caller',
  user: 'user_name',
  group: 'user_group',
  provider: 'provider',
  model: 'model',
  target: 'target',
  tool: 'tool',
  protocol: 'protocol',
  day: 'hour / 24',
  hour: 'hour',
};

export interface UsageQuery {
  /** Unix time in ms. Whole hours are counted, and before `LIMITS.usageHours` whole days. */
  readonly from: number;
  readonly to: number;
  /** One or several: a row for each combination. */
  readonly by: readonly UsageGroup[];
  readonly equal: Readonly<Partial<Record<UsageGroup, string>>>;
}

/** Sums of requests. `group` has the value of each requested group; empty if the requests have none. */
export interface UsageRow extends UsageSums {
  readonly group: Readonly<Partial<Record<UsageGroup, string>>>;
}

export interface Usage {
  readonly rows: readonly UsageRow[];
  readonly total: UsageSums;
  /** There are more rows than `LIMITS.usageRows`. */
  readonly isCut: boolean;
}

const SUMMED = ['requests', 'errors', 'refused', 'input_tokens', 'output_tokens', 'cached_tokens', 'cost'];
const SUMS = SUMMED.map((name) => `CAST(coalesce(sum(${name}), 0) AS TEXT) AS ${name}`).join(', ');

/** Sums from `agctl_usage`, highest cost first; days and hours in order. */
export async function usageOf(database: Database, query: UsageQuery): Promise<Usage> {
  const { where, values } = conditionsOf(query);
  const columns = query.by.map((name) => GROUPS[name]);
  const isByTime = query.by[0] === 'day' || query.by[0] === 'hour';
  const names = columns.map((column, index) => `${column} AS g${index}`).join(', ');
  const order = isByTime
    ? 'g0'
    : 'sum(cost) DESC, sum(input_tokens + output_tokens) DESC, sum(requests) DESC, g0';
  const rows = await database.query(
    `SELECT ${names}, ${SUMS} FROM agctl_usage WHERE ${where} GROUP BY ${columns.join(', ')} ORDER BY ${order} LIMIT ?`,
    [...values, LIMITS.usageRows + 1],
  );
  return {
    rows: rows.slice(0, LIMITS.usageRows).map((row) => ({
      group: Object.fromEntries(query.by.map((name, index) => [name, labelOf(name, row, `g${index}`)])),
      ...sumsOf(row),
    })),
    total: totalOf(rows),
    isCut: rows.length > LIMITS.usageRows,
  };
}

function conditionsOf({ from, to, equal }: UsageQuery): { where: string; values: SqlValue[] } {
  const conditions = ['hour >= ?', 'hour < ?'];
  // Sums of older hours were added to that of their day, whose hour is the first.
  const isOfDays = from < Date.now() - LIMITS.usageHours;
  const first = isOfDays ? Math.floor(from / DAY) * 24 : Math.floor(from / HOUR);
  const values: SqlValue[] = [first, Math.ceil(to / HOUR)];
  for (const name of USAGE_GROUPS) {
    const value = equal[name];
    if (value === undefined) continue;
    conditions.push(`${GROUPS[name]} = ?`);
    values.push(value);
  }
  return { where: conditions.join(' AND '), values };
}

function labelOf(name: UsageGroup, row: SqlRow, column: string): string {
  if (name === 'day') return time(row, column, DAY).toISOString().slice(0, 10);
  if (name === 'hour') return time(row, column, HOUR).toISOString().slice(0, 13).concat(':00Z');
  return optionalText(row, column) ?? '';
}

function totalOf(rows: readonly SqlRow[]): UsageSums {
  const total: Record<string, string> = {};
  for (const name of SUMMED) total[name] = String(rows.reduce((sum, row) => sum + integer(row, name), 0n));
  return sumsOf(total);
}

function sumsOf(row: SqlRow): UsageSums {
  const sum = (name: string): number => number(row, name);
  return {
    requests: sum('requests'),
    errors: sum('errors'),
    refused: sum('refused'),
    inputTokens: sum('input_tokens'),
    outputTokens: sum('output_tokens'),
    cachedInputTokens: sum('cached_tokens'),
    costUsd: usdOf(String(integer(row, 'cost'))),
  };
}
