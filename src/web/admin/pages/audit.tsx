import { type ReactNode, useEffect, useState } from 'react';
import {
  AUDIT_OUTCOMES,
  type AuditEventView,
  type AuditOutcome,
  type AuditView,
} from '../../../core/audit-view.ts';
import { type ApiError, ask } from '../../shared/api.ts';
import { Select } from '../../shared/form.tsx';
import { time } from '../../shared/format.ts';
import { Problem } from '../../shared/problem.tsx';
import { changeQuery, useLocation } from '../../shared/router.tsx';
import { visible } from '../../shared/visible.ts';
import { WithCode } from '../../shared/with-code.tsx';

/** Events of one page: where each is a card, fifty would be twelve thousand pixels high. */
const PAGE = matchMedia('(max-width: 40rem)').matches ? 15 : 50;

const SINCE = [
  ['', 'any time'],
  ['24h', 'last 24 hours'],
  ['7d', 'last 7 days'],
  ['30d', 'last 30 days'],
] as const;

const OUTCOMES = [['', 'any outcome'], ...AUDIT_OUTCOMES.map((each) => [each, each] as const)] as const;

const MARKS: Readonly<Record<AuditOutcome, readonly [mark: string, tone: string]>> = {
  done: ['✓', 'good'],
  refused: ['✗', 'bad'],
  failed: ['!', 'warn'],
  unknown: ['?', 'warn'],
};

/** What is listed; part of the address of the page. */
interface Filter {
  readonly since: string;
  readonly action: string;
  readonly actor: string;
  readonly outcome: string;
}

/** Who has changed what through the admin server, newest first. */
export function Audit(): ReactNode {
  const { query } = useLocation();
  const value = (name: keyof Filter): string => query.get(name) ?? '';
  const filter: Filter = {
    since: value('since'),
    action: value('action'),
    actor: value('actor'),
    outcome: value('outcome'),
  };
  const { events, error, isKept, more, reload } = useEvents(filter);
  return (
    <>
      <Filters filter={filter} reload={reload} />
      {error === undefined ? null : (
        <Problem title="The events could not be read" error={error} retry={reload} />
      )}
      {isKept ? null : (
        <p className="panel">
          These are the last events since the gateway was started. With <code>config.database</code>, or{' '}
          <code>config.audit.file</code>, they are kept.
        </p>
      )}
      {events === undefined ? (
        error === undefined && <p className="quiet">Loading …</p>
      ) : events.length === 0 ? (
        <p className="panel">No such events.</p>
      ) : (
        <Events events={events} />
      )}
      {more === undefined ? null : (
        <p>
          <button type="button" onClick={more}>
            Show older events
          </button>
        </p>
      )}
    </>
  );
}

function Filters({ filter, reload }: { readonly filter: Filter; readonly reload: () => void }): ReactNode {
  const { query } = useLocation();
  const change = (part: Partial<Filter>): void => changeQuery(query, part);
  return (
    <search className="row bar">
      <Select label="Time" value={filter.since} values={SINCE} choose={(since) => change({ since })} />
      <Select
        label="Outcome"
        value={filter.outcome}
        values={OUTCOMES}
        choose={(outcome) => change({ outcome })}
      />
      <label>
        Action
        <input
          type="search"
          className="mono"
          spellCheck={false}
          placeholder="key.create"
          value={filter.action}
          onChange={({ target }) => change({ action: target.value })}
        />
      </label>
      <label>
        Who
        <input
          type="search"
          spellCheck={false}
          placeholder="name of a subject, user or key"
          value={filter.actor}
          onChange={({ target }) => change({ actor: target.value })}
        />
      </label>
      <button type="button" onClick={reload}>
        Read again
      </button>
    </search>
  );
}

function Events({ events }: { readonly events: readonly AuditEventView[] }): ReactNode {
  return (
    <section className="panel" aria-label="Events">
      <div className="scroll">
        <table className="cards">
          <thead>
            <tr>
              {['Action', 'Outcome', 'Time', 'Who', 'From', 'What'].map((name) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {events.map((event, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: events have no id, and older ones come at the end.
              <Row key={`${event.time} ${index}`} event={event} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Row({ event }: { readonly event: AuditEventView }): ReactNode {
  const { action, outcome, time: at, actor, from, target, before, after, gateway, detail } = event;
  const [mark, tone] = MARKS[outcome];
  return (
    <tr>
      <th scope="row">
        <code className="whole">{visible(action)}</code>
      </th>
      <td className={`short ${tone}`} data-name="Outcome">
        <span>
          {mark} {outcome}
        </span>
      </td>
      <td className="short" data-name="Time">
        {time(at)}
      </td>
      <td data-name="Who">
        <span>
          {actor.name === undefined ? null : <strong>{visible(actor.name)}</strong>}{' '}
          <span className="quiet">
            {visible([actor.kind, actor.role].filter((part) => part !== undefined).join(', '))}
          </span>
        </span>
      </td>
      <td data-name="From">
        <span>
          {visible(from?.address ?? '–')}
          {from?.proxy === undefined || from.proxy === from.address ? null : (
            <span className="quiet"> via {visible(from.proxy)}</span>
          )}
        </span>
      </td>
      <td className="any" data-name="What">
        <div>
          {target === undefined ? null : <div>{visible(target)}</div>}
          {detail === undefined ? null : (
            <div className="quiet">
              <WithCode text={detail} />
            </div>
          )}
          {before === undefined && after === undefined ? null : (
            <div className="quiet">
              SHA-256 <Hash text={before} /> →{' '}
              {outcome === 'done' ? <Hash text={after} /> : outcome === 'unknown' ? 'not known' : 'unchanged'}
            </div>
          )}
          {gateway === undefined ? null : <div className="quiet">on {visible(gateway)}</div>}
        </div>
      </td>
    </tr>
  );
}

/** The beginning of a hash, which tells versions apart; all of it as its title. */
function Hash({ text }: { readonly text: string | undefined }): ReactNode {
  return text === undefined ? (
    'nothing'
  ) : (
    <code className="whole" title={visible(text)}>
      {visible(text.slice(0, 12))}
    </code>
  );
}

interface Found {
  readonly events: readonly AuditEventView[] | undefined;
  readonly error: ApiError | undefined;
  readonly isKept: boolean;
  /** Undefined if there are none. */
  readonly more: (() => void) | undefined;
  readonly reload: () => void;
}

function useEvents(filter: Filter): Found {
  const [state, setState] = useState<{
    readonly path?: string;
    readonly events?: readonly AuditEventView[];
    readonly next?: number | null;
    readonly kept?: boolean;
    readonly error?: ApiError;
  }>({});
  const [round, setRound] = useState(0);
  const given = Object.entries({ ...filter, limit: String(PAGE) }).filter(([, text]) => text.trim() !== '');
  const path = `/api/audit?${new URLSearchParams(given)}`;
  const load = (from: string, before: readonly AuditEventView[], signal?: AbortSignal): void => {
    ask<AuditView>(from, signal === undefined ? {} : { signal }).then(
      ({ events, next, kept }) => setState({ path, events: [...before, ...events], next, kept }),
      (error: ApiError) => {
        if (signal?.aborted !== true) setState((known) => ({ ...known, error }));
      },
    );
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: `load` is new each time; `round` loads it again.
  useEffect(() => {
    const gone = new AbortController();
    // A moment later, so that a name is not asked for by each of its letters.
    const timer = setTimeout(() => load(path, [], gone.signal), state.events === undefined ? 0 : TYPING);
    return () => {
      clearTimeout(timer);
      gone.abort();
    };
  }, [path, round]);
  const { events, next, kept = true, error } = state;
  return {
    events,
    error,
    isKept: kept,
    more:
      next === null || next === undefined || events === undefined
        ? undefined
        : () => load(`${path}&after=${next}`, events),
    reload: () => setRound(round + 1),
  };
}

/** In ms. */
const TYPING = 200;
