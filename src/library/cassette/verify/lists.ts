import { elementsOf, isRecord, membersOf, textIn } from '../../../core/foreign.ts';
import { differences } from '../compare.ts';
import type { Ignored } from '../ignored.ts';
import { type Finding, notesOf } from './finding.ts';

/** Members of answers that are lists of named things: what identifies an entry, and what it is called. */
const LISTS = [
  { member: 'tools', by: 'name', called: 'tool' },
  { member: 'prompts', by: 'name', called: 'prompt' },
  { member: 'resources', by: 'uri', called: 'resource' },
  { member: 'resourceTemplates', by: 'uriTemplate', called: 'resource template' },
  { member: 'data', by: 'id', called: 'model' },
  { member: 'models', by: 'name', called: 'model' },
] as const;

/** Findings about a list; undefined if the recorded answer is none. The order of entries does not count. */
export function listFindings(recorded: unknown, found: unknown, ignored: Ignored): Finding[] | undefined {
  for (const list of LISTS) {
    const entries = entriesOf(recorded, list);
    if (entries === undefined) continue;
    const now = entriesOf(found, list) ?? new Map<string, unknown>();
    return compareEntries(entries, now, list.called, ignored.in(list.member));
  }
  return undefined;
}

function compareEntries(
  recorded: ReadonlyMap<string, unknown>,
  found: ReadonlyMap<string, unknown>,
  called: string,
  ignored: Ignored,
): Finding[] {
  const finding = (
    severity: Finding['severity'],
    name: string,
    message: string,
    notes?: string[],
  ): Finding => ({
    severity,
    code: 'AGW0502',
    message,
    path: [name],
    ...(notes !== undefined && { notes }),
  });
  const gone = [...recorded.keys()].filter((name) => !found.has(name));
  const added = [...found.keys()].filter((name) => !recorded.has(name));
  const changed = [...recorded].flatMap(([name, entry]) => {
    if (!found.has(name)) return [];
    // Wherever it is in the list.
    const all = differences(entry, found.get(name), ignored.in('0').and(['created']));
    if (all.length === 0) return [];
    return [
      finding('error', name, `the ${called} \`${name}\` is another one than was recorded`, notesOf(all)),
    ];
  });
  return [
    ...gone.map((name) => finding('error', name, `the ${called} \`${name}\` is not listed any more`)),
    ...added.map((name) => finding('warning', name, `the ${called} \`${name}\` is new`)),
    ...changed,
  ];
}

/** Entries by what identifies them; undefined if there is no such list, or it has others. */
function entriesOf(
  value: unknown,
  { member, by }: (typeof LISTS)[number],
): ReadonlyMap<string, unknown> | undefined {
  const list = membersOf(value)[member];
  if (!Array.isArray(list)) return undefined;
  const entries = elementsOf(list).map((entry) => [textIn(membersOf(entry)[by]), entry] as const);
  return entries.every(([name, entry]) => name !== '' && isRecord(entry)) ? new Map(entries) : undefined;
}
