import { type FormEvent, type ReactNode, useEffect, useRef, useState } from 'react';
import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { ApiError } from '../../shared/api.ts';
import { count, counted } from '../../shared/format.ts';
import { Link, navigate, useLocation } from '../../shared/router.tsx';
import { visible } from '../../shared/visible.ts';
import { GraphCanvas } from '../graph/canvas.tsx';
import { Details } from '../graph/details.tsx';
import { Legend } from '../graph/legend.tsx';
import { type GraphData, loadTopology, loadWalk } from '../graph/load.ts';
import { GraphTables } from '../graph/tables.tsx';
import { ENTITY_TYPES, type EntityType } from '../model.ts';
import { curl, Empty, Unreachable } from '../placeholder.tsx';

const DEPTHS = Array.from({ length: MEMORY_STORE_LIMITS.graphDepth }, (_none, index) => index + 1);

/** What the whole graph begins with. Passages and messages are shown around the document or workspace that has them. */
const WIDE: readonly EntityType[] = ['workspace', 'doc_file', 'entity'];

/** The types of the address; `WIDE` without any. */
function typesIn(text: string | null): readonly EntityType[] {
  const asked = (text ?? '').split(',');
  const known = ENTITY_TYPES.filter((type) => asked.includes(type));
  return known.length === 0 ? WIDE : known;
}

/** Entities and their relations: all of some types, or those around one entity. */
export function Graph(): ReactNode {
  const { query } = useLocation();
  const entity = query.get('entity') ?? '';
  const depth = query.get('depth') ?? '2';
  const types = typesIn(query.get('types'));
  const { data, error, loaded, reload } = useGraph(entity, depth, types.join(','));
  const start = useRef<HTMLInputElement>(null);
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const name = String(form.get('entity')).trim();
    if (name !== '') navigate('/graph', { entity: name, depth: String(form.get('depth')) });
    else navigate('/graph', { types: form.getAll('type').join(',') });
  };
  return (
    <>
      <form key={`${entity} ${depth} ${types.join(',')}`} className="row" onSubmit={submit}>
        <label className="wide">
          Start entity (id, name or path; empty: everything)
          <input ref={start} data-filter name="entity" type="search" defaultValue={entity} />
        </label>
        <label>
          Depth
          <select name="depth" defaultValue={depth}>
            {DEPTHS.map((hops) => (
              <option key={hops}>{hops}</option>
            ))}
          </select>
        </label>
        <button type="submit" className="primary">
          Show
        </button>
        {entity !== '' ? null : (
          <fieldset className="checks">
            <legend>Types</legend>
            {ENTITY_TYPES.map((type) => (
              <label key={type}>
                <input
                  type="checkbox"
                  name="type"
                  value={type}
                  defaultChecked={types.includes(type)}
                  onChange={({ currentTarget: { form } }) => form?.requestSubmit()}
                />{' '}
                {type}
              </label>
            ))}
          </fieldset>
        )}
      </form>
      {error === undefined ? null : <Failed error={error} entity={entity} depth={depth} retry={reload} />}
      {data === undefined && error === undefined ? (
        <p role="status">Loading… {loaded === 0 ? '' : counted(loaded, 'entity', 'entities')}</p>
      ) : null}
      {data?.nodes.length === 0 && data.others.length > 0 ? (
        <p role="status">
          There is nothing of these types, and {data.others.join(', ')}.{' '}
          <Link to="/graph" query={{ types: ENTITY_TYPES.join(',') }}>
            Show everything
          </Link>
        </p>
      ) : null}
      {data?.nodes.length === 0 && data.others.length === 0 ? (
        <Empty
          title="The graph is empty"
          call={curl('/ingest/docs', { title: 'First note', content: '# First note\n\nAgents find this.' })}
        >
          Documents, their chunks and the folders that they are in become its entities. Store one:
        </Empty>
      ) : null}
      {data === undefined || data.nodes.length === 0 ? null : (
        <Shown data={data} depth={depth} leave={start} />
      )}
    </>
  );
}

function Failed({
  error,
  entity,
  depth,
  retry,
}: {
  readonly error: Error;
  readonly entity: string;
  readonly depth: string;
  readonly retry: () => void;
}): ReactNode {
  if (!(error instanceof ApiError) || error.status !== 404)
    return <Unreachable error={error} retry={retry} />;
  const { near } = error.details;
  const names = Array.isArray(near) ? near.filter((name) => typeof name === 'string') : [];
  return (
    <div role="alert" className="panel problem">
      <p>
        <strong>✗ No entity is called “{visible(entity)}”.</strong>
      </p>
      <p>
        {names.length === 0 ? 'No similar name exists.' : 'Close names:'}
        {names.map((name) => (
          <span key={name}>
            {' '}
            <Link to="/graph" query={{ entity: name, depth }} className="chip">
              {visible(name)}
            </Link>
          </span>
        ))}
      </p>
      <Link to="/graph">Show the whole graph</Link>
    </div>
  );
}

function Shown({
  data,
  depth,
  leave,
}: {
  readonly data: GraphData;
  readonly depth: string;
  readonly leave: React.RefObject<HTMLElement | null>;
}): ReactNode {
  const [isTable, setTable] = useState(false);
  const [current, setCurrent] = useState(data.root);
  useEffect(() => setCurrent(data.root), [data]);
  const node = current === undefined ? undefined : data.nodes[current];
  const open = (index: number): void => navigate('/graph', { entity: data.nodes[index]?.id ?? '', depth });
  const label = `Graph of ${counted(data.nodes.length, 'entity', 'entities')} and ${counted(data.edges.length, 'relation')}`;
  return (
    <>
      <fieldset className="tabs">
        <legend>Show as</legend>
        <button type="button" aria-pressed={!isTable} onClick={() => setTable(false)}>
          Drawing
        </button>
        <button type="button" aria-pressed={isTable} onClick={() => setTable(true)}>
          Table
        </button>
      </fieldset>
      <p>
        {label}.{data.others.length === 0 ? '' : ` Not shown: ${data.others.join(', ')}.`}
        {data.notes.map((note) => (
          <span key={note} className="note">
            {' '}
            ! {note}
          </span>
        ))}
      </p>
      <Namesakes data={data} depth={depth} />
      <div className="split">
        <div>
          {isTable ? (
            <GraphTables data={data} choose={setCurrent} />
          ) : (
            <figure>
              <figcaption>
                <Legend data={data} />
              </figcaption>
              <GraphCanvas
                data={data}
                current={current}
                label={label}
                onCurrent={setCurrent}
                onOpen={open}
                leave={leave}
              />
            </figure>
          )}
        </div>
        <aside className="panel" aria-label="Chosen entity">
          <p role="status" className="offscreen">
            {node === undefined
              ? ''
              : `${visible(node.name)}, ${node.type}, ${count(data.neighbours[current ?? 0]?.length ?? 0)} relations`}
          </p>
          {current === undefined || node === undefined ? (
            <p className="quiet">Select an entity to see its content and metadata.</p>
          ) : (
            <Details key={node.id} data={data} current={current} depth={depth} choose={setCurrent} />
          )}
        </aside>
      </div>
    </>
  );
}

/** Links to other entities with the name of the start. */
function Namesakes({ data, depth }: { readonly data: GraphData; readonly depth: string }): ReactNode {
  if (data.namesakes.length === 0) return null;
  return (
    <nav aria-label="Others with this name" className="namesakes">
      Others with this name:
      {data.namesakes.map(({ id, type }) => (
        <Link key={id} to="/graph" query={{ entity: id, depth }}>
          {type} <code>{visible(id.slice(0, 40))}</code>
        </Link>
      ))}
    </nav>
  );
}

interface LoadedGraph {
  readonly data: GraphData | undefined;
  readonly error: Error | undefined;
  /** Entities loaded so far. */
  readonly loaded: number;
  readonly reload: () => void;
}

function useGraph(entity: string, depth: string, types: string): LoadedGraph {
  const [data, setData] = useState<GraphData>();
  const [error, setError] = useState<Error>();
  const [loaded, setLoaded] = useState(0);
  const [round, setRound] = useState(0);
  useEffect(() => {
    // A change of it starts the effect again.
    void round;
    const gone = new AbortController();
    setData(undefined);
    setError(undefined);
    setLoaded(0);
    const loading =
      entity === ''
        ? loadTopology(typesIn(types), gone.signal, setLoaded)
        : loadWalk(entity, Number(depth) || 2, gone.signal);
    loading.then(
      (found) => gone.signal.aborted || setData(found),
      (problem: Error) => gone.signal.aborted || setError(problem),
    );
    return () => gone.abort();
  }, [entity, depth, types, round]);
  return { data, error, loaded, reload: () => setRound(round + 1) };
}
