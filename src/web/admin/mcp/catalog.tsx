import { type ReactNode, useMemo, useState } from 'react';
import type { Column } from '../../shared/column.ts';
import { clock, count, counted, time } from '../../shared/format.ts';
import { VirtualTable } from '../../shared/virtual-table.tsx';
import { visible } from '../../shared/visible.ts';
import type { Endpoint } from '../playground/endpoints.ts';
import { groupsOf, matching, withoutTarget } from './groups.ts';
import type { Item } from './item.ts';
import { type ToolUse, useToolUses } from './tool-use.ts';

/** A tool of the catalog. One that is hidden because it has changed has no item. */
interface CatalogRow {
  readonly key: string;
  readonly target: string;
  /** Its name at the target. */
  readonly own: string;
  readonly item: Item | undefined;
  readonly use: ToolUse;
  readonly pin: 'none' | 'pinned' | 'changed' | 'hidden';
}

/** Every tool behind an endpoint: how it is used, and whether it is still what it was when it was pinned. */
export function Catalog({
  endpoint,
  tools,
  isRecording,
  open,
}: {
  readonly endpoint: Endpoint;
  readonly tools: readonly Item[];
  readonly isRecording: boolean;
  /** Undefined: nothing can be called. */
  readonly open: ((item: Item) => void) | undefined;
}): ReactNode {
  const uses = useToolUses(isRecording);
  const [chosen, setChosen] = useState<string>();
  const [text, setText] = useState('');
  const shown = useMemo(() => matching(tools, text), [tools, text]);
  // The state of the gateway is read again every few seconds, and seldom changes.
  const pins = endpoint.backends
    .flatMap(({ targets = [] }) => targets)
    .map(({ name, pins: own }) => ({ name, ...own }));
  const targets = pins.map(({ name }) => name);
  const shape = JSON.stringify(pins);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `shape` has both.
  const rows = useMemo(() => {
    const changed = new Map(pins.map(({ name, changed: own }) => [name, own]));
    const listed = groupsOf(shown, targets).flatMap(({ target, items }) =>
      items.map((item): CatalogRow => {
        const own = withoutTarget(item.name, target);
        const isPinned = changed.get(target) !== undefined;
        const isChanged = changed.get(target)?.includes(own) === true;
        const pin = isChanged ? 'changed' : isPinned ? 'pinned' : 'none';
        return { key: `${target}\n${own}`, target, own, item, use: uses(target, own), pin };
      }),
    );
    const known = new Set(listed.map(({ key }) => key));
    const hidden = pins.flatMap(({ name, changed: own = [], isEnforced }) =>
      isEnforced !== true || text !== ''
        ? []
        : own
            .map((tool): CatalogRow => {
              const key = `${name}\n${tool}`;
              return { key, target: name, own: tool, item: undefined, use: uses(name, tool), pin: 'hidden' };
            })
            .filter(({ key }) => !known.has(key)),
    );
    return [...hidden, ...listed];
  }, [shown, shape, uses, text]);
  if (tools.length === 0 && rows.length === 0) return null;
  const changed = rows.filter(({ pin }) => pin === 'changed' || pin === 'hidden').length;
  return (
    <section className="catalog" aria-labelledby="catalog">
      <h2 id="catalog">Catalog</h2>
      <div className="row bar">
        <label className="grow">
          Search the catalog
          <input
            type="search"
            autoComplete="off"
            value={text}
            onChange={({ target }) => setText(target.value)}
          />
        </label>
        <span className="quiet">
          {counted(tools.length, 'tool')}, calls{' '}
          {isRecording ? 'of the last 30 days' : 'as far as this page knows them'}
        </span>
        {changed === 0 ? null : (
          <span className="warn">! {counted(changed, 'tool')} changed since pinned</span>
        )}
      </div>
      {rows.length === 0 ? (
        <p className="panel">No tool matches.</p>
      ) : (
        <VirtualTable
          caption="Tools behind this endpoint"
          rows={rows}
          columns={pins.some(({ pinned }) => pinned !== undefined) ? COLUMNS : UNPINNED}
          keyOf={keyOf}
          chosen={chosen}
          choose={setChosen}
          open={({ key, item }) => {
            setChosen(key);
            if (item !== undefined) open?.(item);
          }}
          detail={detailOf}
        />
      )}
    </section>
  );
}

const keyOf = ({ key }: CatalogRow): string => key;

/** What a row has to say in words. Descriptions are in the form of the tool: they may be long, and say anything. */
function detailOf({ pin }: CatalogRow): string {
  if (pin === 'changed')
    return 'Its title, description, schemas or annotations have changed since it was pinned; it is still offered. The log shows how.';
  if (pin === 'hidden')
    return 'It has changed since it was pinned, and is hidden from clients until its pin is updated. The log shows how.';
  return '';
}

const PINS: Readonly<Record<CatalogRow['pin'], string>> = {
  none: 'not pinned',
  pinned: '✓ as pinned',
  changed: '! changed',
  hidden: '✗ hidden',
};

/** Number of failures with its mark; a dash for none, so that they stand out. */
const marked = (mark: string, value: number): string => (value === 0 ? '0' : `${mark} ${count(value)}`);

function lastText({ last }: ToolUse): string {
  if (last === undefined) return 'never';
  if (typeof last === 'string') return last;
  const isToday = new Date(last).toDateString() === new Date().toDateString();
  return isToday ? clock(last) : time(new Date(last).toISOString());
}

const WIDE = ['tablet', 'desktop'] as const;

const COLUMNS: readonly Column<CatalogRow>[] = [
  { name: 'Tool', shrinks: true, cell: ({ own }) => visible(own) },
  { name: 'Target', shownOn: WIDE, shrinks: true, cell: ({ target }) => visible(target) },
  { name: 'Calls', isNumber: true, cell: ({ use }) => count(use.calls) },
  {
    name: 'Errors',
    isNumber: true,
    text: ({ use }) => marked('✗', use.errors),
    cell: ({ use }) => <span className={use.errors === 0 ? '' : 'bad'}>{marked('✗', use.errors)}</span>,
  },
  {
    name: 'Refused',
    shownOn: WIDE,
    isNumber: true,
    text: ({ use }) => marked('!', use.refused),
    cell: ({ use }) => <span className={use.refused === 0 ? '' : 'warn'}>{marked('!', use.refused)}</span>,
  },
  { name: 'Last use', cell: ({ use }) => lastText(use) },
  {
    name: 'Pin',
    shownOn: WIDE,
    text: ({ pin }) => PINS[pin],
    cell: ({ pin }) => (
      <span className={pin === 'changed' ? 'warn' : pin === 'hidden' ? 'bad' : ''}>{PINS[pin]}</span>
    ),
  },
];
const UNPINNED = COLUMNS.filter(({ name }) => name !== 'Pin');
