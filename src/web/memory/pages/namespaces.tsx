import { type FormEvent, type ReactNode, useCallback, useEffect, useState } from 'react';
import { MEMORY_PAGE_LIMITS } from '../../../core/memory-limits.ts';
import { ask } from '../../shared/api.ts';
import { count, size } from '../../shared/format.ts';
import { say } from '../../shared/toasts.tsx';
import { DEFAULT_NAMESPACE, NAMESPACE_HEADER } from '../key.ts';
import { API, ENTITY_TYPES, type NamespacePage, type Stats } from '../model.ts';
import { chooseNamespace, useNamespace } from '../namespace.ts';
import { Unreachable } from '../placeholder.tsx';
import { FigureTable } from './overview.tsx';

/** All namespaces: their sizes and contents, and their deletion. Only for the main key. */
export function Namespaces(): ReactNode {
  const current = useNamespace();
  const [open, setOpen] = useState(current);
  const { page, error, more, reload } = useNamespaces();
  if (error?.status === 403)
    return (
      <p className="panel">
        The key of this tab belongs to one namespace, which all pages show. The main key (
        <code>MEMORY_API_KEY</code>) shows all of them.
      </p>
    );
  if (error !== undefined) return <Unreachable error={error} retry={reload} />;
  if (page === undefined) return <p role="status">Loading…</p>;
  return (
    <div className="split halves">
      <div className="panel">
        <table className="figures">
          <caption>{count(page.namespaces.length)} by name</caption>
          <thead>
            <tr>
              <th scope="col">Namespace</th>
              <th scope="col" className="end">
                On disk
              </th>
            </tr>
          </thead>
          <tbody>
            {page.namespaces.map(({ name, bytes }) => (
              <tr key={name}>
                <th scope="row">
                  <button
                    type="button"
                    className="plain name"
                    aria-pressed={name === open}
                    onClick={() => setOpen(name)}
                  >
                    {name}
                  </button>
                  {name === current ? <span className="chip">shown</span> : null}
                </th>
                <td>{size(bytes)}</td>
              </tr>
            ))}
          </tbody>
        </table>
        {page.nextCursor === null ? null : (
          <button type="button" onClick={more}>
            More namespaces
          </button>
        )}
      </div>
      <One
        key={open}
        name={open}
        isCurrent={open === current}
        deleted={() => {
          if (open === current) chooseNamespace(DEFAULT_NAMESPACE);
          setOpen(DEFAULT_NAMESPACE);
          reload();
        }}
      />
    </div>
  );
}

function useNamespaces(): {
  readonly page: NamespacePage | undefined;
  readonly error: (Error & { readonly status?: number }) | undefined;
  readonly more: () => void;
  readonly reload: () => void;
} {
  const [page, setPage] = useState<NamespacePage>();
  const [error, setError] = useState<Error>();
  const load = useCallback((former?: NamespacePage): void => {
    const query = new URLSearchParams({ limit: String(MEMORY_PAGE_LIMITS.tableRows) });
    const cursor = former?.nextCursor ?? null;
    if (cursor !== null) query.set('cursor', cursor);
    ask<NamespacePage>(`${API}/namespaces?${query}`).then(
      ({ namespaces, nextCursor }) => {
        setPage({ namespaces: [...(former?.namespaces ?? []), ...namespaces], nextCursor });
        setError(undefined);
      },
      (problem: Error) => setError(problem),
    );
  }, []);
  useEffect(() => load(), [load]);
  return { page, error, more: () => load(page), reload: () => load() };
}

function One({
  name,
  isCurrent,
  deleted,
}: {
  readonly name: string;
  readonly isCurrent: boolean;
  readonly deleted: () => void;
}): ReactNode {
  const [stats, setStats] = useState<Stats>();
  const [error, setError] = useState<Error>();
  const load = useCallback((): void => {
    ask<Stats>(`${API}/stats`, { headers: { [NAMESPACE_HEADER]: name } }).then(setStats, setError);
  }, [name]);
  useEffect(load, [load]);
  return (
    <aside className="panel" aria-label={`Namespace ${name}`}>
      <h2>{name}</h2>
      {error === undefined ? null : (
        <Unreachable
          error={error}
          retry={() => {
            setError(undefined);
            load();
          }}
        />
      )}
      {stats === undefined ? null : (
        <FigureTable
          rows={[
            ...ENTITY_TYPES.map((type) => [type, count(stats.entities[type])] as const),
            ['documents', count(stats.documents)],
            ['sessions', count(stats.sessions)],
            ['turns', count(stats.turns)],
          ]}
        />
      )}
      <p>
        {isCurrent ? (
          'All pages show this namespace.'
        ) : (
          <button type="button" className="primary" onClick={() => chooseNamespace(name)}>
            Show this namespace
          </button>
        )}
      </p>
      {name === DEFAULT_NAMESPACE ? null : <Delete name={name} deleted={deleted} />}
    </aside>
  );
}

/** There is no way back, so the name has to be typed. */
function Delete({ name, deleted }: { readonly name: string; readonly deleted: () => void }): ReactNode {
  const [typed, setTyped] = useState('');
  const [error, setError] = useState<Error>();
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (typed !== name) return;
    ask(`${API}/namespaces/${encodeURIComponent(name)}`, { method: 'DELETE' }).then(() => {
      say({ text: `The namespace ${name} is deleted` });
      deleted();
    }, setError);
  };
  return (
    <form onSubmit={submit} aria-label="Delete the namespace">
      <h3>Delete it with everything in it</h3>
      <p>This cannot be undone.</p>
      <div className="row">
        <label className="wide">
          <span>
            Type <strong>{name}</strong> to confirm
          </span>
          <input
            autoComplete="off"
            autoCapitalize="off"
            spellCheck={false}
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
          />
        </label>
        <button type="submit" className="danger" disabled={typed !== name}>
          Delete
        </button>
      </div>
      {error === undefined ? null : (
        <p role="alert" className="bad">
          ✗ {error.message}
        </p>
      )}
    </form>
  );
}
