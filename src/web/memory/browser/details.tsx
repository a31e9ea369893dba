import { type ReactNode, useEffect, useRef } from 'react';
import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { Link } from '../../shared/router.tsx';
import { useLoaded } from '../../shared/use-loaded.ts';
import { visible } from '../../shared/visible.ts';
import { useDeletions } from '../deletions.ts';
import { Content, Metadata } from '../graph/details.tsx';
import { Mark } from '../graph/legend.tsx';
import { API, type Entity, type Surroundings } from '../model.ts';
import { Unreachable } from '../placeholder.tsx';
import { Removal } from '../removal.tsx';
import { Observations, observationsOf } from './observations.tsx';
import { Origin } from './origin.tsx';
import { Relations } from './relations.tsx';

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
