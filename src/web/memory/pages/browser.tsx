import type { FormEvent, ReactNode } from 'react';
import { currentPath, Link, navigate, useLocation } from '../../shared/router.tsx';
import { visible } from '../../shared/visible.ts';
import { EntityDetails } from '../browser/details.tsx';
import { useEntities } from '../browser/use-entities.ts';
import { useDeletions } from '../deletions.ts';
import { Mark } from '../graph/legend.tsx';
import { ENTITY_TYPES } from '../model.ts';
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
