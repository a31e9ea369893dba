import { escapeControls } from '../../core/log.ts';
import type { ShownBudget, ShownKey } from '../../core/virtual-key.ts';
import type { Run } from '../context.ts';
import { type ShowOptions, showJson } from '../proxy/show-json.ts';

export const run: Run<ShowOptions> = (options, context) => showJson('/api/keys', textOf, options, context);

const HEADER = ['NAME', 'ID', 'KEY', 'STATE', 'CREATED', 'EXPIRES', 'MODELS', 'BUDGETS'];

function textOf(value: unknown): string {
  const { keys = [] } = value as { keys?: readonly ShownKey[] };
  if (keys.length === 0) return 'no keys: agctl keys create creates one\n';
  const rows = [HEADER, ...keys.map(rowOf)].map((row) => row.map(escapeControls));
  const widths = HEADER.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
}

function rowOf({ name, id, hint, state, createdAt, expiresAt, allowedModels, budgets }: ShownKey): string[] {
  return [
    name,
    id,
    `…${hint}`,
    state,
    createdAt.slice(0, 10),
    expiresAt?.slice(0, 10) ?? 'never',
    allowedModels?.join(',') ?? 'all',
    budgets.length === 0 ? 'none' : budgets.map(budgetOf).join(', '),
  ];
}

const budgetOf = ({ limit, spent }: ShownBudget): string => `${spent} of ${limit}`;
