import { elementsOf, membersOf, shownValue, stringIn, textIn } from '../../core/foreign.ts';
import { displayWidth, escapeControls } from '../../core/render/width.ts';
import type { Run } from '../context.ts';
import { asCalled } from '../invocation.ts';
import { table } from '../proxy/print.ts';
import { type ShowOptions, showJson } from '../proxy/show-json.ts';

export const run: Run<ShowOptions> = (options, context) =>
  showJson(
    '/api/keys',
    (keys) => {
      const text = textOf(keys);
      return text === undefined ? undefined : asCalled(text, context);
    },
    options,
    context,
  );

const HEADER = ['NAME', 'ID', 'KEY', 'STATE', 'CREATED', 'EXPIRES', 'MODELS', 'BUDGETS'];

function textOf({ keys }: Members): string | undefined {
  if (!Array.isArray(keys)) return undefined;
  if (keys.length === 0) return 'no keys: agctl keys create creates one\n';
  const rows = [HEADER, ...keys.map(membersOf).map(rowOf)];
  return table(
    rows.map((row) => row.map(escapeControls)),
    displayWidth,
  );
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

const budgetOf = ({ limit, spent }: Members): string => `${shownValue(spent)} of ${textIn(limit)}`;
