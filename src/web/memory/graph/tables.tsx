import { type ReactNode, useDeferredValue, useMemo, useState } from 'react';
import { MEMORY_PAGE_LIMITS } from '../../../core/memory-limits.ts';
import { count, counted } from '../../shared/format.ts';
import { visible } from '../../shared/visible.ts';
import type { GraphData } from './load.ts';

interface Row {
  readonly key: string;
  /** Index of the row's node. */
  readonly index: number;
  readonly cells: readonly (string | number)[];
}

/** The graph as tables: the same entities and relations as in the drawing. */
export function GraphTables({
  data,
  choose,
}: {
  readonly data: GraphData;
  readonly choose: (index: number) => void;
}): ReactNode {
  const [filter, setFilter] = useState('');
  const needle = useDeferredValue(filter).toLowerCase();
  const entities = useMemo(() => entityRows(data), [data]);
  const relations = useMemo(() => relationRows(data), [data]);
  return (
    <>
      <div className="row">
        <label>
          Filter
          <input
            data-filter
            type="search"
            value={filter}
            onChange={(event) => setFilter(event.target.value)}
          />
        </label>
      </div>
      <Sortable
        caption="Entities"
        heads={['Name', 'Type', 'Hops', 'Relations']}
        rows={entities}
        needle={needle}
        choose={choose}
      />
      <Sortable
        caption="Relations"
        heads={['From', 'Relation', 'To', 'Weight']}
        rows={relations}
        needle={needle}
        choose={choose}
      />
    </>
  );
}

function entityRows({ nodes, neighbours }: GraphData): Row[] {
  return nodes.map(({ id, name, type, depth }, index) => ({
    key: id,
    index,
    cells: [name, type, depth ?? '', neighbours[index]?.length ?? 0],
  }));
}

function relationRows({ nodes, edges }: GraphData): Row[] {
  return edges.map(({ from, to, type, weight }) => ({
    key: `${from} ${to} ${type}`,
    index: from,
    cells: [nodes[from]?.name ?? '', type, nodes[to]?.name ?? '', weight],
  }));
}

function Sortable({
  caption,
  heads,
  rows,
  needle,
  choose,
}: {
  readonly caption: string;
  readonly heads: readonly string[];
  readonly rows: readonly Row[];
  readonly needle: string;
  readonly choose: (index: number) => void;
}): ReactNode {
  const [order, setOrder] = useState({ column: -1, sign: 1 });
  const [shown, setShown] = useState<number>(MEMORY_PAGE_LIMITS.tableRows);
  const found = useMemo(() => sorted(rows, needle, order), [rows, needle, order]);
  const rest = found.length - shown;
  return (
    <>
      <div className="scroll">
        <table>
          <caption>
            {caption}: {count(found.length)}
          </caption>
          <thead>
            <tr>
              {heads.map((head, column) => (
                <th key={head} scope="col" aria-sort={ariaSort(order, column)}>
                  <button
                    type="button"
                    className="plain"
                    onClick={() => setOrder({ column, sign: order.column === column ? -order.sign : 1 })}
                  >
                    {head} {order.column === column ? (order.sign === 1 ? '▲' : '▼') : ''}
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {found.slice(0, shown).map(({ key, index, cells: [first, ...others] }) => (
              <tr key={key}>
                <td>
                  <button type="button" className="plain name" onClick={() => choose(index)}>
                    {visible(String(first))}
                  </button>
                </td>
                {others.map((cell, column) => (
                  <td key={heads[column + 1]}>{visible(String(cell))}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rest <= 0 ? null : (
        <button type="button" onClick={() => setShown(shown + MEMORY_PAGE_LIMITS.tableRows)}>
          Show {count(Math.min(rest, MEMORY_PAGE_LIMITS.tableRows))} more ({counted(rest, 'row')} left)
        </button>
      )}
    </>
  );
}

function sorted(
  rows: readonly Row[],
  needle: string,
  { column, sign }: { readonly column: number; readonly sign: number },
): readonly Row[] {
  const found =
    needle === ''
      ? rows
      : rows.filter(({ cells }) => cells.some((cell) => String(cell).toLowerCase().includes(needle)));
  if (column < 0) return found;
  return [...found].sort(({ cells: left }, { cells: right }) => {
    const [one, other] = [left[column] ?? '', right[column] ?? ''];
    if (typeof one === 'number' && typeof other === 'number') return sign * (one - other);
    return sign * String(one).localeCompare(String(other), 'en', { numeric: true });
  });
}

function ariaSort(
  order: { readonly column: number; readonly sign: number },
  column: number,
): 'ascending' | 'descending' | 'none' {
  if (order.column !== column) return 'none';
  return order.sign === 1 ? 'ascending' : 'descending';
}
