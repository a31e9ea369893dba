import { type ReactNode, useDeferredValue, useEffect, useRef, useState } from 'react';
import { type ApiError, ask } from '../../shared/api.ts';
import { Select } from '../../shared/form.tsx';
import { clock } from '../../shared/format.ts';
import { Problem } from '../../shared/problem.tsx';
import { navigate, useLocation } from '../../shared/router.tsx';
import { useShortcuts } from '../../shared/shortcuts.tsx';
import { visible } from '../../shared/visible.ts';
import { MARKS } from '../model/fields.ts';
import { NoDatabase } from '../parts/no-database.tsx';
import { outcomeOfRecord, type RecordPage, type ShownRecord, titleOf } from '../records/record.ts';
import { RecordView } from '../records/record-view.tsx';
import '../records/records.css';

/** What the search is for; part of the page's address. */
interface Filter {
  readonly text: string;
  readonly protocol: string;
  readonly since: string;
  /** Values that other pages link to, such as the session or the model. */
  readonly equal: Readonly<Record<string, string>>;
}

/** Names in `equal`, as the API has them. */
const EQUAL = ['session', 'model', 'tool', 'target', 'key', 'user', 'status'];

const SINCE = [
  ['1h', 'last hour'],
  ['6h', 'last 6 hours'],
  ['24h', 'last 24 hours'],
  ['7d', 'last 7 days'],
  ['30d', 'last 30 days'],
  ['all', 'any time'],
] as const;
const USUAL = '24h';
/** Messages of MCP that open sessions and read lists, and other requests, are only shown if they are asked for. */
const PROTOCOLS = [
  ['', 'all calls'],
  ['llm', 'models'],
  ['mcp', 'tool calls'],
  ['all', 'any request'],
] as const;
const PAGE = 50;
/** As in `records.css`. */
const BESIDE = matchMedia('(min-width: 68rem)');

/** Searches the record of requests, and shows what was said in one of them. */
export function Conversations(): ReactNode {
  const { query } = useLocation();
  const text = query.get('text') ?? '';
  const protocol = query.get('protocol') ?? '';
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- these names, and texts
  const equal = Object.fromEntries(
    EQUAL.map((name) => [name, query.get(name) ?? '']).filter(([, value]) => value !== ''),
  ) as Filter['equal'];
  const filter: Filter = { text, protocol, equal, since: query.get('since') ?? USUAL };
  const found = useRecords({ ...filter, text: useDeferredValue(text) });
  const { records, error } = found;
  const asked = query.get('id') ?? '';
  const id = /^\d{1,15}$/.test(asked) ? Number(asked) : undefined;
  const open = (next: number | undefined): void =>
    show({ ...filter, id: String(next ?? '') }, BESIDE.matches);
  // On a narrow screen, the conversation takes the place of the list.
  const detail = useRef<HTMLElement>(null);
  useEffect(() => {
    if (id === undefined || BESIDE.matches) return;
    scrollTo(0, 0);
    detail.current?.focus({ preventScroll: true });
  }, [id]);
  const shown = id ?? records?.[0]?.id;
  const move = (by: number): void => {
    const at = records?.findIndex((record) => record.id === shown) ?? -1;
    const next = records?.[at + by];
    if (next !== undefined) open(next.id);
  };
  useShortcuts([
    { keys: 'j', what: 'next request', run: () => move(1) },
    { keys: 'k', what: 'request before', run: () => move(-1) },
    ...(id === undefined || BESIDE.matches
      ? []
      : [{ keys: 'Escape', what: 'back to the list', run: () => open(undefined) }]),
  ]);
  if (error?.status === 409) return <NoDatabase what="Conversations" more={PAYLOADS} />;
  return (
    <>
      <FilterBar filter={filter} />
      {error === undefined ? null : (
        <Problem title="The record of requests could not be read" error={error} retry={found.reload} />
      )}
      {records === undefined ? (
        error === undefined && <p className="quiet">Loading …</p>
      ) : records.length === 0 ? (
        <p className="panel">
          {found.next === null ? 'No recorded request matches.' : 'None yet among the newest ones.'}
          {found.next === null ? null : (
            <button type="button" onClick={found.more}>
              Search older ones
            </button>
          )}
        </p>
      ) : (
        <div className={id === undefined ? 'records' : 'records opened'}>
          <List
            records={records}
            chosen={shown}
            choose={open}
            more={found.next === null ? undefined : found.more}
          />
          <section ref={detail} className="panel detail" aria-label="Conversation" tabIndex={-1}>
            <button type="button" className="back" onClick={() => open(undefined)}>
              <span aria-hidden="true">‹</span> All requests
            </button>
            {shown === undefined ? null : <RecordView key={shown} id={shown} />}
          </section>
        </div>
      )}
    </>
  );
}

const PAYLOADS = `frontendPolicies:
  accessLog:
    database:
      payloads: full`;

interface Found {
  /** Undefined until the first answer. */
  readonly records: readonly ShownRecord[] | undefined;
  readonly next: string | null;
  readonly error: ApiError | undefined;
  readonly more: () => void;
  readonly reload: () => void;
}

function useRecords({ text, protocol, since, equal }: Filter): Found {
  const [state, setState] = useState<Pick<Found, 'records' | 'next' | 'error'>>({
    records: undefined,
    next: null,
    error: undefined,
  });
  const [round, setRound] = useState(0);
  const given = {
    text,
    protocol: protocol === 'all' ? '' : protocol,
    operation: protocol === 'mcp' ? 'tools/call' : '',
    contents: protocol === 'all' ? '' : 'true',
    since: equal['session'] === undefined && since !== 'all' ? since : '',
    ...equal,
    limit: String(PAGE),
  };
  const search = new URLSearchParams(Object.entries(given).filter(([, value]) => value !== '')).toString();
  const load = (after: string | null, signal?: AbortSignal): void => {
    const path = `/api/records?${search}${after === null ? '' : `&after=${after}`}`;
    ask<RecordPage>(path, signal === undefined ? {} : { signal }).then(
      ({ records, next }) =>
        setState((before) => ({
          records: after === null ? records : [...(before.records ?? []), ...records],
          next,
          error: undefined,
        })),
      (error: ApiError) => signal?.aborted || setState((before) => ({ ...before, error })),
    );
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: another search, or the same again.
  useEffect(() => {
    const gone = new AbortController();
    load(null, gone.signal);
    return () => gone.abort();
  }, [search, round]);
  return { ...state, more: () => load(state.next), reload: () => setRound(round + 1) };
}

/** Goes to the address of a search, with the request that is open. */
function show({ equal, ...address }: Filter & { readonly id?: string }, replace: boolean): void {
  const given = Object.entries({ ...address, ...equal }).filter(([, value]) => value !== '');
  navigate('/conversations', Object.fromEntries(given), { replace });
}

function FilterBar({ filter }: { readonly filter: Filter }): ReactNode {
  const set = (change: Partial<Filter>): void => show({ ...filter, ...change }, true);
  const choice = (
    label: string,
    name: 'protocol' | 'since',
    values: readonly (readonly [string, string])[],
  ): ReactNode => (
    <Select
      label={label}
      value={filter[name]}
      // Links of other pages may have other values.
      values={
        values.some(([value]) => value === filter[name])
          ? values
          : [[filter[name], `last ${filter[name]}`], ...values]
      }
      choose={(value) => set({ [name]: value })}
    />
  );
  return (
    <search className="row">
      <label className="grow">
        Words that were said
        <input
          type="search"
          data-filter
          aria-keyshortcuts="/"
          value={filter.text}
          onChange={(event) => set({ text: event.target.value })}
        />
      </label>
      {choice('With', 'protocol', PROTOCOLS)}
      {choice('Time', 'since', SINCE)}
      {Object.entries(filter.equal).map(([name, value]) => (
        <button
          key={name}
          type="button"
          onClick={() =>
            set({ equal: Object.fromEntries(Object.entries(filter.equal).filter(([one]) => one !== name)) })
          }
        >
          {name === 'session' ? 'One session' : `${name} ${visible(value)}`} <span aria-hidden="true">×</span>
          <span className="unseen">, show all</span>
        </button>
      ))}
    </search>
  );
}

function List({
  records,
  chosen,
  choose,
  more,
}: {
  readonly records: readonly ShownRecord[];
  readonly chosen: number | undefined;
  readonly choose: (id: number) => void;
  readonly more: (() => void) | undefined;
}): ReactNode {
  return (
    <section className="panel" aria-label="Requests">
      <ul className="plain-list">
        {records.map((record) => (
          <li key={record.id}>
            <button
              type="button"
              className="record"
              aria-current={record.id === chosen ? 'true' : undefined}
              onClick={() => choose(record.id)}
            >
              <span>
                <span className={outcomeOfRecord(record)}>{MARKS[outcomeOfRecord(record)]}</span>{' '}
                {visible(titleOf(record))}
              </span>
              <span className="quiet">{clock(Date.parse(record.time))}</span>
              {record.preview === undefined ? null : (
                <span className="preview">{visible(record.preview)}</span>
              )}
              <span className="quiet">
                {visible(
                  [record.user ?? record.key, record.target ?? record.provider].filter(Boolean).join(' · '),
                )}
              </span>
            </button>
          </li>
        ))}
      </ul>
      {more === undefined ? null : (
        <button type="button" onClick={more}>
          Older
        </button>
      )}
    </section>
  );
}
