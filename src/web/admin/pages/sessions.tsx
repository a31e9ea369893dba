import { type FormEvent, type ReactNode, useMemo, useState } from 'react';
import { ApiError } from '../../shared/api.ts';
import { Select } from '../../shared/form.tsx';
import { count, time, times } from '../../shared/format.ts';
import { Problem } from '../../shared/problem.tsx';
import { Link, navigate, useLocation } from '../../shared/router.tsx';
import { useLoaded } from '../../shared/use-loaded.ts';
import { visible } from '../../shared/visible.ts';
import { dollars } from '../model/money.ts';
import { NoDatabase } from '../parts/no-database.tsx';
import type { RecordPage, ShownRecord } from '../records/record.ts';
import { type Asked, BY, type By, isCaller, useConversation } from '../sessions/load.ts';
import { Timeline } from '../sessions/timeline.tsx';
import { totalsOf } from '../sessions/waterfall.ts';

const SINCE = [
  ['1h', 'last hour'],
  ['24h', 'last 24 hours'],
  ['7d', 'last 7 days'],
  ['30d', 'last 30 days'],
] as const;

const NAMES: Readonly<Record<By, string>> = { session: 'session', trace: 'trace', key: 'key', user: 'user' };

/** One conversation as a timeline of its calls of models and tools. */
export function Sessions(): ReactNode {
  const { query } = useLocation();
  const by = BY.find((each) => query.get(each) !== null) ?? 'session';
  const asked: Asked = {
    by,
    id: query.get(by) ?? '',
    since: query.get('since') ?? '24h',
    from: query.get('from') ?? '',
    to: query.get('to') ?? '',
    withKey: query.get('alone') === null,
  };
  return (
    <>
      <Search key={`${asked.by} ${asked.id}`} asked={asked} />
      {asked.id === '' ? <Recent /> : <Found asked={asked} />}
    </>
  );
}

function show({ by, id, since, withKey }: Omit<Asked, 'from' | 'to'>): void {
  navigate('/sessions', {
    ...(id === '' ? {} : { [by]: id }),
    ...(isCaller(by) ? { since } : {}),
    ...(by === 'session' && !withKey ? { alone: '1' } : {}),
  });
}

function Search({ asked }: { readonly asked: Asked }): ReactNode {
  const [by, setBy] = useState(asked.by);
  const [id, setId] = useState(asked.id);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    show({ ...asked, by, id: id.trim() });
  };
  return (
    <form className="row" onSubmit={submit}>
      <Select
        label="Conversation by"
        value={by}
        values={BY.map((each) => [each, isCaller(each) ? `name of the ${NAMES[each]}` : `${NAMES[each]} id`])}
        choose={(next) => setBy(BY.find((each) => each === next) ?? 'session')}
      />
      <label className="grow">
        {isCaller(by) ? `Name of the ${NAMES[by]}` : `${by === 'trace' ? 'Trace' : 'Session'} id`}
        <input
          type="search"
          data-filter
          aria-keyshortcuts="/"
          autoComplete="off"
          spellCheck={false}
          value={id}
          onChange={({ target }) => setId(target.value)}
        />
      </label>
      {isCaller(by) && asked.from !== '' ? (
        <button type="button" onClick={() => show(asked)}>
          {times(asked.from, asked.to)} <span aria-hidden="true">×</span>
          <span className="unseen">, show other times</span>
        </button>
      ) : null}
      {isCaller(by) && asked.from === '' ? (
        <Select
          label="Time"
          value={asked.since}
          values={SINCE.some(([value]) => value === asked.since) ? SINCE : [[asked.since], ...SINCE]}
          choose={(since) => show({ ...asked, by, id: id.trim(), since })}
        />
      ) : null}
      <button type="submit" className="primary">
        Show
      </button>
      {by === 'session' && asked.id !== '' ? (
        <label className="choice">
          <input
            type="checkbox"
            checked={asked.withKey}
            onChange={({ target }) => show({ ...asked, withKey: target.checked })}
          />{' '}
          with model calls of the same key or user in this time
        </label>
      ) : null}
    </form>
  );
}

function Found({ asked }: { readonly asked: Asked }): ReactNode {
  const found = useConversation(asked);
  const { records, error } = found;
  if (error?.status === 409) return <NoDatabase what="Sessions" />;
  if (error !== undefined) return <Problem title="The conversation could not be read" error={error} />;
  if (records === undefined) return <p className="quiet">Loading …</p>;
  if (records.length === 0)
    return (
      <p className="panel">
        No recorded call has the {NAMES[asked.by]} {isCaller(asked.by) ? '' : 'id '}
        <strong>{visible(asked.id)}</strong>. <Link to="/sessions">Recent conversations</Link>
      </p>
    );
  return <Timeline found={found} />;
}

/** Calls among which recent conversations are looked for. */
const NEWEST = 500;
const SHOWN = 50;
const EVERY = 10_000;

interface Group {
  /** Unique: a caller may have several. */
  readonly name: string;
  readonly by: By;
  readonly id: string;
  readonly records: readonly [ShownRecord, ...ShownRecord[]];
}

/** The conversations that the newest calls belong to. */
function Recent(): ReactNode {
  const { data, error, reload } = useLoaded<RecordPage>(
    `/api/records?contents=true&since=7d&limit=${NEWEST}`,
    EVERY,
  );
  const [order, setOrder] = useState<Order>('kind');
  const [isWhole, setWhole] = useState(false);
  const groups = useMemo(() => groupsOf(data?.records ?? []).toSorted(ORDERS[order].compare), [data, order]);
  const shown = isWhole ? groups : groups.slice(0, SHOWN);
  if (error instanceof ApiError && error.status === 409) return <NoDatabase what="Sessions" />;
  if (data === undefined)
    return error === undefined ? (
      <p className="quiet">Loading …</p>
    ) : (
      <Problem title="The record of requests could not be read" error={error} retry={reload} />
    );
  if (groups.length === 0)
    return (
      <p className="panel">
        No recorded call of the last 7 days belongs to a session, a trace, a key or a user. Calls of MCP tools
        have a session; calls of models get one from{' '}
        <code>frontendPolicies.accessLog.database.add.session</code>, such as{' '}
        <code>{'request.headers["x-conversation"]'}</code>.
      </p>
    );
  return (
    <section className="panel" aria-labelledby="recent-conversations">
      <h2 id="recent-conversations">Recent conversations</h2>
      <div className="row bar">
        <Select
          label="Order"
          value={order}
          values={Object.entries(ORDERS).map(([name, { label }]) => [name, label])}
          choose={(next) => setOrder(isOrder(next) ? next : 'kind')}
        />
        <span className="quiet">Of the newest {count(data.records.length)} calls of models and tools.</span>
      </div>
      <div className="scroll">
        <table className="figures">
          <thead>
            <tr>
              <th scope="col">Conversation</th>
              {['Calls', 'Errors', 'Tokens', 'Cost'].map((name) => (
                <th key={name} scope="col" className="number">
                  {name}
                </th>
              ))}
              <th scope="col">Last call</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((group) => (
              <GroupRow key={group.name} group={group} />
            ))}
          </tbody>
        </table>
      </div>
      {groups.length > shown.length ? (
        <p>
          <button type="button" onClick={() => setWhole(true)}>
            Show {count(groups.length - shown.length)} more
          </button>
        </p>
      ) : null}
    </section>
  );
}

function GroupRow({ group: { by, id, records } }: { readonly group: Group }): ReactNode {
  const { errors, input, output, cost } = totalsOf(records);
  const [newest] = records;
  const title = titleOfGroup(records);
  const parts = [
    namesIn(records),
    newest.key,
    newest.user,
    // `claude-code` of `claude-code/2.1.0 (cli)`
    newest.userAgent?.split(/[/ ]/)[0],
  ].filter((each) => each !== undefined && each !== title);
  return (
    <tr>
      <th scope="row">
        <Link to="/sessions" query={{ [by]: id, ...periodOf(by, records) }}>
          {visible(title)}
        </Link>
        <div className="quiet">
          {visible([...new Set(parts)].join(' · '))} ·{' '}
          <span className="whole" title={visible(id)}>
            {NAMES[by]} {visible(isCaller(by) ? id : shortened(id))}
          </span>
        </div>
      </th>
      <td className="number" data-name="Calls">
        {count(records.length)}
      </td>
      <td className={errors === 0 ? 'number' : 'number bad'} data-name="Errors">
        {errors === 0 ? '0' : `✗ ${count(errors)}`}
      </td>
      <td className="number" data-name="Tokens">
        {count(input + output)}
      </td>
      <td className="number" data-name="Cost">
        {cost === undefined ? '–' : dollars(cost)}
      </td>
      <td className="short" data-name="Last call">
        {time(newest.time)}
      </td>
    </tr>
  );
}

/** Names of models and tools beside a conversation. */
const NAMED = 3;
/** Characters of an id that tell conversations apart. */
const ID = 8;

const shortened = (id: string): string => (id.length <= ID + 4 ? id : `${id.slice(0, ID)}…`);

/** What a model was asked first, as far as it is recorded; else the tools. Arguments of tools are JSON, often `{}`. */
function titleOfGroup(records: Group['records']): string {
  const asked = records.findLast(({ protocol, preview = '' }) => protocol === 'llm' && preview !== '');
  return asked?.preview ?? namesIn(records);
}

/** The models and tools: `small, files: echo, read`. */
function namesIn(records: Group['records']): string {
  const names = records.toReversed().map(({ model, tool, target, operation }) => {
    if (model !== undefined || tool === undefined) return model ?? operation;
    return target === undefined ? tool : `${target}: ${tool}`;
  });
  const all = [...new Set(names)];
  return all.slice(0, NAMED).join(', ') + (all.length > NAMED ? ', …' : '');
}

/** The time of one conversation of a caller. It may go on until nothing was called for `QUIET`. */
function periodOf(by: By, records: Group['records']): Readonly<Record<string, string>> {
  const [newest, oldest] = [records[0], records.at(-1) ?? records[0]];
  if (!isCaller(by)) return {};
  return { from: oldest.time, to: new Date(endOf(newest) + QUIET).toISOString() };
}

interface Ordering {
  readonly label: string;
  readonly compare: (a: Group, b: Group) => number;
}

const lastOf = ({ records: [newest] }: Group): number => Date.parse(newest.time);
const newestFirst = (a: Group, b: Group): number => lastOf(b) - lastOf(a);
const highest =
  (of: (group: Group) => number): Ordering['compare'] =>
  (a, b) =>
    of(b) - of(a) || newestFirst(a, b);

/** What belongs together for sure comes first: calls of a session, then those of a trace, then those of a caller. */
const ORDERS = {
  kind: {
    label: 'sessions first',
    compare: (a, b) => BY.indexOf(a.by) - BY.indexOf(b.by) || newestFirst(a, b),
  },
  last: { label: 'last call', compare: newestFirst },
  calls: { label: 'most calls', compare: highest(({ records }) => records.length) },
  errors: { label: 'most errors', compare: highest(({ records }) => totalsOf(records).errors) },
  cost: { label: 'highest cost', compare: highest(({ records }) => totalsOf(records).cost ?? 0) },
} as const satisfies Readonly<Record<string, Ordering>>;
type Order = keyof typeof ORDERS;

const isOrder = (name: string): name is Order => name in ORDERS;

/** After a pause of this length, calls of a key or user are another conversation. In ms. */
const QUIET = 30 * 60_000;

const endOf = ({ time, durationMs = 0 }: ShownRecord): number => Date.parse(time) + durationMs;

/**
 * A call belongs to its session, or else to its trace if that has other calls, or else to its caller. With tracing, the gateway begins a
 * trace for each request that has none, so that calls of a trace alone have nothing in common but who made them.
 */
function groupsOf(all: readonly ShownRecord[]): readonly Group[] {
  const records = all.filter(isOfSomebody);
  const groups = new Map<string, Group>();
  const traces = Map.groupBy(records, ({ session, traceId }) =>
    session === undefined ? traceId : undefined,
  );
  const isAlone = (traceId: string | undefined): boolean => (traces.get(traceId)?.length ?? 0) < 2;
  /** How many conversations of a caller have ended, reading from the newest call. */
  const earlier = new Map<string, number>();
  // Newest first.
  for (const record of records) {
    const [by, id] = placeOf(record, isAlone(record.traceId));
    if (id === undefined) continue;
    const place = `${by} ${id}`;
    const name = (): string => `${place} ${earlier.get(place) ?? 0}`;
    const later = groups.get(name())?.records.at(-1);
    if (isCaller(by) && later !== undefined && Date.parse(later.time) - endOf(record) > QUIET)
      earlier.set(place, (earlier.get(place) ?? 0) + 1);
    const known = groups.get(name());
    groups.set(name(), {
      name: name(),
      by,
      id,
      records: known === undefined ? [record] : [...known.records, record],
    });
  }
  return [...groups.values()];
}

/** False for a request that was refused before its call began, without a caller and a session, such as one without a credential. */
const isOfSomebody = ({ protocol, model, session, key, user }: ShownRecord): boolean =>
  protocol !== 'llm' || [model, session, key, user].some((each) => each !== undefined);

function placeOf(
  { session, traceId, key, user }: ShownRecord,
  isAlone: boolean,
): readonly [By, string | undefined] {
  if (session !== undefined) return ['session', session];
  if (traceId !== undefined && !isAlone) return ['trace', traceId];
  return key === undefined ? ['user', user] : ['key', key];
}
