import { elementsOf, membersOf, stringIn, textIn } from '../../core/foreign.ts';
import { displayWidth, escapeControls } from '../../core/render/width.ts';
import type { Run } from '../context.ts';
import { table } from '../proxy/print.ts';
import { type ShowOptions, showJson } from '../proxy/show-json.ts';

export const run: Run<ShowOptions> = (options, context) => showJson('/api/users', textOf, options, context);

const HEADER = ['USER', 'ID', 'SERVER', 'SCOPES', 'SIGNED IN', 'TOKEN EXPIRES'];

function textOf({ signIns }: Readonly<Record<string, unknown>>): string | undefined {
  if (!Array.isArray(signIns)) return undefined;
  if (signIns.length === 0) return 'nobody has signed in at an MCP server\n';
  const rows = [HEADER, ...signIns.map(membersOf).map(rowOf)];
  return table(
    rows.map((row) => row.map(escapeControls)),
    displayWidth,
  );
}

function rowOf(signIn: Readonly<Record<string, unknown>>): string[] {
  const scopes = elementsOf(signIn['scopes']).map(textIn).join(' ');
  const minute = (time: string): string => time.slice(0, 16).replace('T', ' ');
  return [
    textIn(signIn['user']),
    textIn(signIn['id']),
    textIn(signIn['server']),
    scopes === '' ? 'default' : scopes,
    minute(textIn(signIn['signedInAt'])),
    minute(stringIn(signIn['expiresAt']) ?? 'never'),
  ];
}
