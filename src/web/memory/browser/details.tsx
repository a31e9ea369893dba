import { type FormEvent, type ReactNode, useEffect, useRef, useState } from 'react';
import { MEMORY_API_LIMITS, MEMORY_PAGE_LIMITS, MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { count, counted, time } from '../../shared/format.ts';
import { Link } from '../../shared/router.tsx';
import { type Loaded, useLoaded } from '../../shared/use-loaded.ts';
import { visible } from '../../shared/visible.ts';
import { deleteOnClick, useDeletions } from '../deletions.ts';
import { Content, Metadata } from '../graph/details.tsx';
import { Mark } from '../graph/legend.tsx';
import { API, type Entity, type Relation, type Surroundings } from '../model.ts';
import { Unreachable } from '../placeholder.tsx';
import { Removal } from '../removal.tsx';
import { useChange } from './change.ts';
import { Observations, observationsOf } from './observations.tsx';

/** One entity: where it came from, its content, metadata and relations. */
export function EntityDetails({ id, close }: { readonly id: string; readonly close: () => void }): ReactNode {
  const { data: entity, error, reload } = useLoaded<Entity>(`${API}/entities/${encodeURIComponent(id)}`);
  const around = useLoaded<Surroundings>(
    `${API}/graph?${new URLSearchParams({ entityId: id, maxDepth: '1', limit: String(MEMORY_STORE_LIMITS.graphNodes) })}`,
  );
  const changed = (): void => {
    reload();
    around.reload();
  };
  const hidden = useDeletions(entity, changed);
  const heading = useRef<HTMLHeadingElement>(null);
  const isHidden = hidden.has(id);
  const isLoaded = entity !== undefined;
  // Also brings it into view on a narrow screen, where the list is above it.
  useEffect(() => {
    if (isLoaded || isHidden) heading.current?.focus();
  }, [isLoaded, isHidden]);
  if (entity === undefined)
    return error === undefined ? <p role="status">Loading…</p> : <Unreachable error={error} retry={reload} />;
  return (
    <section className="entity" aria-labelledby="entity">
      <h2 id="entity" ref={heading} tabIndex={-1}>
        <Mark type={entity.type} /> {visible(entity.name)}
      </h2>
      {isHidden ? (
        <p>Deleted, unless you undo it.</p>
      ) : (
        <>
          {error === undefined ? null : <Unreachable error={error} retry={reload} />}
          <p className="quiet">
            {entity.type}, <code>{visible(id)}</code>
          </p>
          <p>
            <Origin entity={entity} relations={around.data} />
          </p>
          {observationsOf(entity) === undefined ? (
            <Content entity={entity} />
          ) : (
            <Observations entity={entity} hidden={hidden} changed={changed} />
          )}
          <Relations entity={entity} around={around} hidden={hidden} changed={changed} />
          <Metadata entity={withoutObservations(entity)} />
          <p className="row">
            <Link to="/graph" query={{ entity: id }}>
              Show in the graph
            </Link>
            <Link to="/forget" query={{ about: entity.name }}>
              Forget everything about it
            </Link>
          </p>
          <Delete entity={entity} close={close} />
        </>
      )}
    </section>
  );
}

function withoutObservations(entity: Entity): Entity {
  const { observations: _shown, ...metadata } = entity.metadata;
  return { ...entity, metadata };
}

/** What can be deleted by itself; the rest belongs to something that can. */
function Delete({ entity, close }: { readonly entity: Entity; readonly close: () => void }): ReactNode {
  const { id, name, type, metadata } = entity;
  const session = metadata['sessionId'];
  const common = { name, hides: id, gone: close };
  if (type === 'entity')
    return <Removal {...common} what="entity" path={`${API}/entities/${encodeURIComponent(id)}`} />;
  if (type === 'doc_file')
    return <Removal {...common} what="document" path={`${API}/documents/${encodeURIComponent(id)}`} />;
  if (type === 'workspace' && typeof session === 'string')
    return <Removal {...common} what="session" path={`${API}/sessions/${encodeURIComponent(session)}`} />;
  return null;
}

/** The relations of an entity. Those between entities of agents can be added and deleted. */
function Relations({
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
          onClick={deleteOnClick({
            key: keyOf(edge),
            what: `${visible(from.name)} → ${visible(relationType)} → ${visible(to.name)}`,
            path: `${API}/relations?${new URLSearchParams({ from: from.name, to: to.name, relationType })}`,
          })}
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

/** Where an entity came from, in words, with a link to what it is a part of. */
function Origin({
  entity: { id, type, metadata },
  relations,
}: {
  readonly entity: Entity;
  readonly relations: Surroundings | undefined;
}): ReactNode {
  const field = (name: string): string => {
    const value = metadata[name];
    return typeof value === 'string' ? value : '';
  };
  if (type === 'entity')
    return field('entityType') === '' && metadata['observations'] === undefined ? (
      'Known only as an end of relations.'
    ) : (
      <>
        Written by agents, as a <strong>{visible(field('entityType')) || 'thing'}</strong>.
      </>
    );
  if (type === 'chat_message')
    return (
      <>
        {visible(field('role'))}, {visible(field('agentId'))}, {time(field('createdAt'))}, in the session{' '}
        <Link to="/replay" query={{ session: field('sessionId') }}>
          {visible(field('sessionId'))}
        </Link>
        .
      </>
    );
  if (field('sessionId') !== '')
    return (
      <>
        A session:{' '}
        <Link to="/replay" query={{ session: field('sessionId') }}>
          replay it
        </Link>
        .
      </>
    );
  const source = <code>{visible(field('source') || field('path') || '/')}</code>;
  const from =
    field('origin') !== 'docs_dir'
      ? 'stored by a call'
      : field('folder') === ''
        ? 'in the docs folder'
        : `in the docs folder ${visible(field('folder'))}`;
  if (type === 'workspace') return <>The folder {source} of the docs folder.</>;
  if (type === 'doc_file')
    return (
      <>
        The document {source}, {from}.
      </>
    );
  const document = relations?.edges.find(
    ({ fromId, relationType }) => fromId === id && relationType === 'BELONGS_TO',
  )?.toId;
  return (
    <>
      A part of the document{' '}
      {document === undefined ? (
        source
      ) : (
        <Link to="/browser" query={{ id: document }}>
          {source}
        </Link>
      )}
      , {from}
      {field('heading') === '' ? '' : <>, below the heading “{visible(field('heading'))}”</>}.
    </>
  );
}
