import { elementsOf, membersOf, stringIn, textIn } from '../../core/foreign.ts';
import { escapeControls } from '../../core/log.ts';
import type { Run } from '../context.ts';
import { type ShowOptions, showJson } from '../proxy/show-json.ts';

export const run: Run<ShowOptions> = (options, context) => showJson('/api/keys', textOf, options, context);

const HEADER = ['NAME', 'ID', 'KEY', 'STATE', 'CREATED', 'EXPIRES', 'MODELS', 'BUDGETS'];

function textOf(value: unknown): string {
  const keys = elementsOf(membersOf(value)['keys']).map(membersOf);
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

type Members = Readonly<Record<string, unknown>>;

function rowOf(key: Members): string[] {
  const budgets = elementsOf(key['budgets']).map(membersOf);
  return [
    textIn(key['name']),
    textIn(key['id']),
    `…${textIn(key['hint'])}`,
    textIn(key['state']),
    textIn(key['createdAt']).slice(0, 10),
    stringIn(key['expiresAt'])?.slice(0, 10) ?? 'never',
    key['allowedModels'] === undefined ? 'all' : elementsOf(key['allowedModels']).map(textIn).join(','),
    budgets.length === 0 ? 'none' : budgets.map(budgetOf).join(', '),
  ];
}

const budgetOf = ({ limit, spent }: Members): string => `${String(spent)} of ${textIn(limit)}`;
