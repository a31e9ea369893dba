import { elementsOf, membersOf, textIn } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { number } from '../../core/sql-row.ts';
import type { Database } from '../kernel/database.ts';
import { parsed } from './search.ts';

/** Columns of a payload that may be read for a preview: long ones, such as the whole history of an agent, are not. */
const READ = ['request', 'response']
  .map((name) => `CASE WHEN length(${name}) <= ${LIMITS.recordPreviewSource} THEN ${name} END AS ${name}`)
  .join(', ');

/**
 * What records are about, by id: the last message of the user, the arguments of a tool, or else the answer, on one line
 * of at most `LIMITS.recordPreview` characters. Records without a payload are left out.
 */
export async function previewsOf(database: Database, ids: readonly number[]): Promise<Map<number, string>> {
  if (ids.length === 0) return new Map();
  const rows = await database.query(
    `SELECT id, ${READ} FROM agctl_record_payloads WHERE id IN (${ids.map(() => '?').join(', ')})`,
    ids,
  );
  const all = rows.map((row): [number, string] => [
    number(row, 'id'),
    oneLine(askedIn(parsed(row['request'])) || answeredIn(parsed(row['response']))),
  ]);
  return new Map(all.filter(([, text]) => text !== ''));
}

function askedIn({ messages, arguments: given }: Payload): string {
  if (given !== undefined) return JSON.stringify(given);
  const said = elementsOf(messages)
    .map(membersOf)
    .filter(({ role }) => role === 'user')
    .map(({ content }) => textOf(content));
  return said.findLast((text) => text !== '') ?? '';
}

function answeredIn({ texts }: Payload): string {
  return elementsOf(texts).map(textOf).join(' ');
}

type Payload = Readonly<Record<string, unknown>>;

/** The text of a message, or of its parts that have one. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return value.map(textOf).filter(Boolean).join(' ');
  return textIn(membersOf(value)['text']);
}

function oneLine(text: string): string {
  const line = text
    .slice(0, 4 * LIMITS.recordPreview)
    .replace(/\s+/g, ' ')
    .trim();
  return line.length > LIMITS.recordPreview ? `${line.slice(0, LIMITS.recordPreview).toWellFormed()}…` : line;
}
