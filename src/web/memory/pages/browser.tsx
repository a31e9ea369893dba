import { type FormEvent, type ReactNode, useCallback, useEffect, useRef, useState } from 'react';
import { MEMORY_PAGE_LIMITS } from '../../../core/memory-limits.ts';
import { ask } from '../../shared/api.ts';
import { currentPath, Link, navigate, useLocation } from '../../shared/router.tsx';
import { visible } from '../../shared/visible.ts';
import { EntityDetails } from '../browser/details.tsx';
import { useDeletions } from '../deletions.ts';
import { Mark } from '../graph/legend.tsx';
import { API, ENTITY_TYPES, type EntityPage } from '../model.ts';
import { curl, Empty, Unreachable } from '../placeholder.tsx';

/** Everything stored, by name: search it, open, change and delete it. */
export function Browser(): ReactNode {
  const { query } = useLocation();
  const text = query.get('text') ?? '';
  const type = query.get('type') ?? '';
  const id = query.get('id') ?? '';
  const filter = { ...(text === '' ? {} : { text }), ...(type === '' ? {} : { type }) };
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const next = { text: String(form.get('text')).trim(), type: String(form.get('type')) };
    navigate('/browser', Object.fromEntries(Object.entries(next).filter(([, value]) => value !== '')));
  };
  const close = (): void => {
    const isOpen = currentPath() === '/browser' && new URLSearchParams(location.search).get('id') === id;
    if (isOpen) navigate('/browser', filter, { replace: true });
  };
  return (
    <>
      <form key={`${text}\n${type}`} className="row" onSubmit={submit}>
        <label className="wide">
          Search in names and texts
          <input data-filter name="text" type="search" defaultValue={text} />
        </label>
        <label>
          Type
          <select name="type" defaultValue={type} onChange={(event) => event.target.form?.requestSubmit()}>
            <option value="">all</option>
            {ENTITY_TYPES.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <button type="submit" className="primary">
          Search
        </button>
      </form>
      <div className={id === '' ? '' : 'split sidebar'}>
        <List text={text} type={type} filter={filter} open={id} />
        {id === '' ? null : <EntityDetails key={id} id={id} close={close} />}
      </div>
    </>
  );
}

function List({
  text,
  type,
  filter,
  open,
}: {
  readonly text: string;
  readonly type: string;
  readonly filter: Readonly<Record<string, string>>;
  readonly open: string;
}): ReactNode {
  const { entities, hasMore, error, more, reload } = useEntities(text, type);
  const hidden = useDeletions(entities, reload);
  if (error !== undefined) return <Unreachable error={error} retry={reload} />;
  if (entities === undefined) return <p role="status">Loading…</p>;
  if (entities.length === 0 && Object.keys(filter).length === 0)
    return (
      <Empty
        title="Nothing is stored yet"
        call={curl('/graph', {
          createEntities: [{ name: 'Alice', entityType: 'person', observations: ['Prefers short answers.'] }],
        })}
      >
        Documents, conversations and what agents write become its entities. Store one:
      </Empty>
    );
  return (
    <nav aria-label="Entities" className="sessions panel">
      <p role="status">
        {entities.length === 0
          ? 'Nothing matches.'
          : `${entities.length}${hasMore ? ' or more' : ''} by name`}
      </p>
      <ul className="entities">
        {entities
          .filter((entity) => !hidden.has(entity.id))
          .map((entity) => (
            <li key={entity.id}>
              <Link to="/browser" query={{ ...filter, id: entity.id }} current={entity.id === open}>
                <Mark type={entity.type} />
                <span>{visible(entity.name)}</span>
              </Link>
              <span className="quiet">{entity.type}</span>
            </li>
          ))}
      </ul>
      {hasMore ? (
        <button type="button" onClick={more}>
          More entities
        </button>
      ) : null}
    </nav>
  );
}

interface Entities {
  /** Undefined until the first page is loaded. */
  readonly entities: EntityPage['entities'] | undefined;
  readonly hasMore: boolean;
  readonly error: Error | undefined;
  readonly more: () => void;
  /** Loads as many again as there are now. */
  readonly reload: () => void;
}

/** Entities by name, page by page. Empty values match everything. */
function useEntities(text: string, type: string): Entities {
  const [page, setPage] = useState<EntityPage>();
  const [error, setError] = useState<Error>();
  const gone = useRef(new AbortController());
  const load = useCallback(
    (former: EntityPage['entities'], cursor: string | null, atLeast: number): void => {
      const { signal } = gone.current;
      const query = new URLSearchParams({ limit: String(MEMORY_PAGE_LIMITS.tableRows) });
      if (text !== '') query.set('query', text);
      if (type !== '') query.set('types', type);
      if (cursor !== null) query.set('cursor', cursor);
      ask<EntityPage>(`${API}/entities?${query}`, { signal }).then(
        ({ entities, nextCursor }) => {
          if (signal.aborted) return;
          const all = [...former, ...entities];
          if (all.length < atLeast && nextCursor !== null) return load(all, nextCursor, atLeast);
          setPage({ entities: all, nextCursor });
          setError(undefined);
        },
        (problem: Error) => signal.aborted || setError(problem),
      );
    },
    [text, type],
  );
  useEffect(() => {
    gone.current = new AbortController();
    setPage(undefined);
    load([], null, 0);
    return () => gone.current.abort();
  }, [load]);
  return {
    entities: page?.entities,
    hasMore: page !== undefined && page.nextCursor !== null,
    error,
    more: () => page !== undefined && load(page.entities, page.nextCursor, 0),
    reload: () => load([], null, page?.entities.length ?? 0),
  };
}
