import { type ReactNode, useEffect, useRef, useState } from 'react';
import type { ShownBudget, ShownKey } from '../../../core/virtual-key.ts';
import { ApiError, ask } from '../../shared/api.ts';
import { Failure } from '../../shared/form.tsx';
import { count, counted, time } from '../../shared/format.ts';
import { Problem } from '../../shared/problem.tsx';
import { changeQuery, Link, useLocation } from '../../shared/router.tsx';
import { say } from '../../shared/toasts.tsx';
import { useLoaded } from '../../shared/use-loaded.ts';
import { visible } from '../../shared/visible.ts';
import { WithCode } from '../../shared/with-code.tsx';
import { NewKey } from '../keys/new-key.tsx';
import { Spend } from '../keys/spend.tsx';
import { dollars } from '../model/money.ts';
import { NoDatabase } from '../parts/no-database.tsx';

const EVERY = 5_000;
/** Keys of one page. */
const PAGE = 50;
/** In ms. */
const TYPING = 200;

interface Subject extends ShownBudget {
  readonly name: string;
  readonly subject?: string;
}

/** A page of keys, newest first. */
interface Listed {
  readonly keys: readonly ShownKey[];
  /** Where the next page begins, or null. */
  readonly next: string | null;
  /** Of all pages, and how many more there would be with revoked ones. */
  readonly total: number;
  readonly hidden: number;
  /** Why keys cannot be created or revoked, or null. */
  readonly readOnly: string | null;
}

/** Virtual keys with their budgets, and budgets of the configuration. */
export function Keys(): ReactNode {
  const { query } = useLocation();
  const search = query.get('search') ?? '';
  const isWithRevoked = query.has('revoked');
  // Where the pages before this one begin: the last one is shown.
  const [starts, setStarts] = useState<readonly string[]>(['']);
  const wanted = useLater(search, TYPING);
  const { data, error, reload } = useLoaded<Listed>(
    `/api/keys?${new URLSearchParams({
      limit: String(PAGE),
      search: wanted,
      revoked: String(isWithRevoked),
      after: starts.at(-1) ?? '',
    })}`,
    EVERY,
  );
  if (error instanceof ApiError && error.status === 409) return <NoDatabase what="Keys and budgets" />;
  if (data === undefined)
    return error === undefined ? (
      <p className="quiet">Loading …</p>
    ) : (
      <Problem title="The keys could not be read" error={error} retry={reload} />
    );
  return (
    <>
      {error === undefined ? null : (
        <Problem title="The keys could not be read again" error={error} retry={reload} />
      )}
      {data.readOnly === null ? (
        <NewKey created={reload} />
      ) : (
        <p className="panel">
          Keys cannot be created or revoked from here: <WithCode text={data.readOnly} />.
        </p>
      )}
      {data.total + data.hidden === 0 && wanted === '' ? (
        <p className="panel">
          There is no key yet. Routes whose policy <code>apiKey</code> has <code>virtualKeys: {'{}'}</code>{' '}
          accept those that are created here or with <code>agctl keys create</code>.
        </p>
      ) : (
        <section className="panel" aria-labelledby="keys">
          <h2 id="keys">Keys</h2>
          <search className="row bar">
            <label className="grow">
              Search
              <input
                type="search"
                spellCheck={false}
                placeholder="name, id, team or other metadata"
                value={search}
                onChange={({ target }) => {
                  changeQuery(query, { search: target.value });
                  setStarts(['']);
                }}
              />
            </label>
            <label className="choice">
              <input
                type="checkbox"
                checked={isWithRevoked}
                onChange={({ target }) => {
                  changeQuery(query, { revoked: target.checked ? '1' : '' });
                  setStarts(['']);
                }}
              />
              Show revoked keys
            </label>
          </search>
          <KeyTable keys={data.keys} changed={data.readOnly === null ? reload : undefined} />
          <Paging data={data} starts={starts} go={setStarts} />
        </section>
      )}
      <Spend />
      <Budgets />
    </>
  );
}

const STATES: Readonly<Record<ShownKey['state'], readonly [mark: string, tone: string]>> = {
  active: ['✓', 'good'],
  expired: ['!', 'warn'],
  revoked: ['✗', 'quiet'],
};

function KeyTable({
  keys,
  changed,
}: {
  readonly keys: readonly ShownKey[];
  /** Without it, keys cannot be revoked. */
  readonly changed: (() => void) | undefined;
}): ReactNode {
  if (keys.length === 0) return <p className="quiet">No such keys.</p>;
  return (
    <div className="scroll">
      <table className="cards">
        <thead>
          <tr>
            {['Name', 'Team', 'State', 'Models', 'Budgets', 'Created', 'Expires', ''].map((name) => (
              <th key={name} scope="col">
                {name === '' ? <span className="unseen">Actions</span> : name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {keys.map((key) => (
            <KeyRow key={key.id} shown={key} changed={changed} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Paging({
  data: { keys, next, total, hidden },
  starts,
  go,
}: {
  readonly data: Listed;
  readonly starts: readonly string[];
  readonly go: (starts: readonly string[]) => void;
}): ReactNode {
  const first = (starts.length - 1) * PAGE;
  const revoked = hidden === 0 ? '' : `; ${counted(hidden, 'revoked key')} not shown`;
  return (
    <nav className="row bar" aria-label="Pages of keys">
      <span className="quiet" role="status">
        {keys.length === 0
          ? `0 of ${counted(total, 'key')}`
          : `${count(first + 1)}–${count(first + keys.length)} of ${counted(total, 'key')}`}
        {revoked}
      </span>
      {starts.length === 1 ? null : (
        <button type="button" onClick={() => go(starts.slice(0, -1))}>
          Newer
        </button>
      )}
      {next === null ? null : (
        <button type="button" onClick={() => go([...starts, next])}>
          Older
        </button>
      )}
    </nav>
  );
}

/** A text once nobody has changed it for a moment. */
function useLater(text: string, ms: number): string {
  const [later, setLater] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setLater(text), ms);
    return () => clearTimeout(timer);
  }, [text, ms]);
  return later;
}

function KeyRow({
  shown,
  changed,
}: {
  readonly shown: ShownKey;
  readonly changed: (() => void) | undefined;
}): ReactNode {
  const { name, hint, state, allowedModels, metadata, budgets, createdAt, expiresAt } = shown;
  const { team, ...others } = metadata;
  const [mark, tone] = STATES[state];
  return (
    <tr>
      <th scope="row">
        <Link to="/requests" query={{ text: name }}>
          {visible(name)}
        </Link>{' '}
        <code className="quiet whole">…{visible(hint)}</code>
      </th>
      <td className="any" data-name="Team">
        <div>
          {team === undefined ? <span className="quiet">no team</span> : visible(textOf(team))}
          {Object.entries(others).map(([label, value]) => (
            <div key={label} className="quiet">
              {visible(label)}: {visible(textOf(value))}
            </div>
          ))}
        </div>
      </td>
      <td className={`short ${tone}`} data-name="State">
        <span>
          {mark} {state}
        </span>
      </td>
      <td className="any" data-name="Models">
        {allowedModels === undefined ? 'all' : visible(allowedModels.join(', '))}
      </td>
      <td data-name="Budgets">
        <div>
          {budgets.length === 0 ? 'none' : null}
          {budgets.map((budget) => (
            <BudgetBar key={budget.limit} budget={budget} of={name} />
          ))}
        </div>
      </td>
      <td className="short" data-name="Created">
        {time(createdAt)}
      </td>
      <td className="short" data-name="Expires">
        {expiresAt === undefined ? 'never' : time(expiresAt)}
      </td>
      <td className="short">
        {state === 'revoked' || changed === undefined ? null : <Revoke shown={shown} changed={changed} />}
      </td>
    </tr>
  );
}

/** A value of the metadata, which may be anything. */
const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** Asks first: a revoked key cannot be restored. */
function Revoke({ shown, changed }: { readonly shown: ShownKey; readonly changed: () => void }): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const [problem, setProblem] = useState('');
  const revoke = (): void => {
    ask('/api/keys/revoke', { method: 'POST', body: { key: shown.id } }).then(
      () => {
        dialog.current?.close();
        say({ text: `The key ${shown.name} is revoked` });
        changed();
      },
      ({ message }: Error) => setProblem(message),
    );
  };
  return (
    <>
      <button type="button" onClick={() => dialog.current?.showModal()}>
        Revoke …
      </button>
      <dialog ref={dialog} aria-label={`Revoke ${visible(shown.name)}`}>
        <h2>Revoke {visible(shown.name)}?</h2>
        <p>New calls with this key are refused at once. It cannot be restored.</p>
        <Failure text={problem} />
        <form method="dialog" className="row">
          <button type="button" className="primary" onClick={revoke}>
            Revoke
          </button>
          <button type="submit">Cancel</button>
        </form>
      </dialog>
    </>
  );
}

/** The budgets of the configuration, with what each subject has used. */
function Budgets(): ReactNode {
  const { data } = useLoaded<{
    readonly budgets: readonly { readonly name: string; readonly limit: string; readonly key?: string }[];
    readonly subjects: readonly Subject[];
  }>('/api/budgets', EVERY);
  if (data === undefined || data.budgets.length === 0) return null;
  return (
    <section className="panel" aria-labelledby="budgets">
      <h2 id="budgets">Budgets of the configuration</h2>
      {data.budgets.map(({ name, limit, key }) => {
        const subjects = data.subjects.filter((subject) => subject.name === name && subject.limit === limit);
        return (
          <section key={`${name} ${limit} ${key ?? ''}`}>
            <h3>
              {visible(name)} <span className="quiet">{visible(limit)}</span>{' '}
              {key === undefined ? null : (
                <span className="quiet">
                  for each <code>{visible(key)}</code>
                </span>
              )}
            </h3>
            {subjects.length === 0 ? <p className="quiet">Nothing was used in this period.</p> : null}
            {subjects.map((subject) => (
              <div key={subject.subject ?? ''} className="subject">
                <strong>{visible(subject.subject ?? withoutSubject(key))}</strong>
                <BudgetBar budget={subject} of={subject.subject ?? name} />
              </div>
            ))}
          </section>
        );
      })}
    </section>
  );
}

/** Calls that share one amount: all, or those for which the expression of the budget has no value: `callers without a team`. */
function withoutSubject(key: string | undefined): string {
  if (key === undefined) return 'all calls';
  const [, member] = /^(?:apiKey|jwt)\.(\w+)$/.exec(key) ?? [];
  return member === undefined ? `calls without ${key}` : `callers without a ${member}`;
}

/** `1,000,000 tokens/month` for `1000000tokens/month`, `$10.00/day` for `10USD/day`; a limit in another form is unchanged. */
const limitText = (limit: string): string =>
  limit.replace(/^([\d.,_]+)\s*([a-z]+)/i, (_, value: string, unit: string) =>
    amountText(Number.parseFloat(value.replaceAll(/[,_]/g, '')), unit),
  );

/** `$0.030`, `20 tokens`: as on all pages. */
const amountText = (value: number, unit: string): string =>
  /^usd$/i.test(unit) ? dollars(value) : `${count(value)} ${unit}`;

/** How much of a budget is used: by calls that have ended, and by open ones. */
function BudgetBar({ budget, of }: { readonly budget: ShownBudget; readonly of: string }): ReactNode {
  const { limit, spent, reserved, resetsAt } = budget;
  const max = Number.parseFloat(limit.replaceAll(/[,_]/g, ''));
  const used = Number(spent) + Number(reserved);
  const isUsedUp = used >= max;
  const unit = /USD/i.test(limit) ? 'USD' : 'tokens';
  return (
    <div className="budget">
      <meter min={0} max={max} value={used} high={max * 0.8} aria-label={`${limit} of ${of}: share used`} />
      <div>
        <span className={isUsedUp ? 'bad' : ''}>
          {isUsedUp ? '✗ ' : ''}
          {amountText(Number(spent), unit)}
        </span>{' '}
        <span className="quiet">
          of {visible(limitText(limit))}
          {Number(reserved) === 0 ? '' : `, ${amountText(Number(reserved), unit)} reserved by open calls`}
          {resetsAt === undefined ? null : (
            <>
              , <span className="whole">resets on {time(resetsAt).replace(/:00$/, '')}</span>
            </>
          )}
        </span>
      </div>
    </div>
  );
}
