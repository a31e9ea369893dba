import { type FormEvent, type ReactNode, useState } from 'react';
import { MEMORY_API_LIMITS, MEMORY_PAGE_LIMITS, MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { count, counted } from '../../shared/format.ts';
import { Link } from '../../shared/router.tsx';
import type { Loaded } from '../../shared/use-loaded.ts';
import { visible } from '../../shared/visible.ts';
import { deleteLater } from '../deletions.ts';
import { API, type Entity, type Relation, type Surroundings } from '../model.ts';
import { Unreachable } from '../placeholder.tsx';
import { useChange } from './change.ts';

/** The relations of an entity. Those between entities of agents can be added and deleted. */
export function Relations({
  entity,
  around: { data, error, reload },
  hidden,
  changed,
}: {
  readonly entity: Entity;
  readonly around: Loaded<Surroundings>;
  readonly hidden: ReadonlySet<string>;
  readonly changed: () => void;
}): ReactNode {
  const [length, setLength] = useState<number>(MEMORY_PAGE_LIMITS.tableRows);
  const nodes = new Map(data?.nodes.map((node) => [node.id, node]));
  const shown = (data?.edges ?? []).filter(
    (edge) => (edge.fromId === entity.id || edge.toId === entity.id) && !hidden.has(keyOf(edge)),
  );
  return (
    <section aria-labelledby="relations">
      <h3 id="relations">{data === undefined ? 'Relations' : counted(shown.length, 'relation')}</h3>
      {error === undefined ? null : <Unreachable error={error} retry={reload} />}
      <ul className="changeable">
        {shown.slice(0, length).map((edge) => (
          <One key={keyOf(edge)} edge={edge} entity={entity} nodes={nodes} />
        ))}
      </ul>
      {shown.length > length ? (
        <button type="button" onClick={() => setLength(length + MEMORY_PAGE_LIMITS.tableRows)}>
          Show more ({count(shown.length - length)} left)
        </button>
      ) : null}
      {data?.truncated === true ? (
        <p className="note">
          ! There are more: at most {count(MEMORY_STORE_LIMITS.graphNodes)} entities are loaded.
        </p>
      ) : null}
      {entity.type === 'entity' ? <Add entity={entity} changed={changed} /> : null}
    </section>
  );
}

const keyOf = ({ fromId, toId, relationType }: Relation): string => `${fromId} ${relationType} ${toId}`;

function One({
  edge,
  entity,
  nodes,
}: {
  readonly edge: Relation;
  readonly entity: Entity;
  readonly nodes: ReadonlyMap<string, Pick<Entity, 'id' | 'name' | 'type'>>;
}): ReactNode {
  const { fromId, toId, relationType } = edge;
  const isOut = fromId === entity.id;
  const other = nodes.get(isOut ? toId : fromId);
  if (other === undefined) return null;
  const [from, to] = isOut ? [entity, other] : [other, entity];
  return (
    <li>
      <span className="text">
        {isOut ? '→' : '←'} <span className="quiet">{visible(relationType)}</span>{' '}
        <Link to="/browser" query={{ id: other.id }}>
          {visible(other.name)}
        </Link>
      </span>
      {from.type === 'entity' && to.type === 'entity' ? (
        <button
          type="button"
          className="plain"
          aria-label={`Delete relation ${visible(relationType)} ${isOut ? 'to' : 'from'} ${visible(other.name)}`}
          onClick={() =>
            deleteLater({
              key: keyOf(edge),
              what: `${visible(from.name)} → ${visible(relationType)} → ${visible(to.name)}`,
              path: `${API}/relations?${new URLSearchParams({ from: from.name, to: to.name, relationType })}`,
            })
          }
        >
          Delete
        </button>
      ) : null}
    </li>
  );
}

function Add({ entity, changed }: { readonly entity: Entity; readonly changed: () => void }): ReactNode {
  const { error, send } = useChange(changed);
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = event.currentTarget;
    const data = new FormData(form);
    const relationType = String(data.get('type')).trim();
    const to = String(data.get('to')).trim();
    if (relationType !== '' && to !== '')
      send({ createRelations: [{ from: entity.name, to, relationType }] }, () => form.reset());
  };
  return (
    <>
      {error === undefined ? null : <Unreachable error={error} retry={changed} />}
      <form className="row" onSubmit={submit}>
        <label>
          New relation
          <input
            name="type"
            required
            maxLength={MEMORY_STORE_LIMITS.relationTypeLength}
            placeholder="works with"
          />
        </label>
        <label className="wide">
          To entity (name)
          <input name="to" required maxLength={MEMORY_API_LIMITS.nameLength} />
        </label>
        <button type="submit">Add</button>
      </form>
    </>
  );
}
