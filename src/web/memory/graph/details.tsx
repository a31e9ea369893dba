import { type ReactNode, useMemo, useState } from 'react';
import { MEMORY_PAGE_LIMITS } from '../../../core/memory-limits.ts';
import { count } from '../../shared/format.ts';
import { Link } from '../../shared/router.tsx';
import { useLoaded } from '../../shared/use-loaded.ts';
import { visible } from '../../shared/visible.ts';
import { API, type Entity } from '../model.ts';
import { Unreachable } from '../placeholder.tsx';
import { plainText } from '../playground/plain-text.ts';
import { Mark } from './legend.tsx';
import type { GraphData } from './load.ts';

const NEIGHBOURS = 50;

/** The selected entity: its content, metadata and relations. */
export function Details({
  data,
  current,
  depth,
  choose,
}: {
  readonly data: GraphData;
  readonly current: number;
  readonly depth: string;
  readonly choose: (index: number) => void;
}): ReactNode {
  const node = data.nodes[current];
  const {
    data: entity,
    error,
    reload,
  } = useLoaded<Entity>(`${API}/entities/${encodeURIComponent(node?.id ?? '')}`);
  const near = data.neighbours[current] ?? [];
  if (node === undefined) return null;
  return (
    <>
      <h2>
        <Mark type={node.type} /> {visible(node.name)}
      </h2>
      <p className="quiet">
        {node.type}, <code>{visible(node.id)}</code>
      </p>
      <p>
        <Link to="/graph" query={{ entity: node.id, depth }}>
          Start from here
        </Link>
      </p>
      {error === undefined ? null : <Unreachable error={error} retry={reload} />}
      {entity === undefined ? null : (
        <>
          <Metadata entity={entity} />
          <Content entity={entity} />
        </>
      )}
      <h3>Relations in this drawing: {count(near.length)}</h3>
      <ul className="plain">
        {near.slice(0, NEIGHBOURS).map((index) => (
          <li key={index}>
            <button type="button" className="plain" onClick={() => choose(index)}>
              {visible(data.nodes[index]?.name ?? '')}
            </button>
          </li>
        ))}
      </ul>
      {near.length > NEIGHBOURS ? (
        <p className="quiet">And {count(near.length - NEIGHBOURS)} more; see the table.</p>
      ) : null}
    </>
  );
}

export function Metadata({ entity: { metadata } }: { readonly entity: Entity }): ReactNode {
  const entries = Object.entries(metadata);
  if (entries.length === 0) return null;
  return (
    <table className="details">
      <caption>Metadata</caption>
      <tbody>
        {entries.map(([name, value]) => (
          <tr key={name}>
            <th scope="row">{visible(name)}</th>
            <td>{visible(typeof value === 'string' ? value : JSON.stringify(value))}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The text of an entity; that of documents is Markdown, which is displayed without its marks. */
export function Content({ entity: { type, content } }: { readonly entity: Entity }): ReactNode {
  return <LongText text={content} isMarkdown={type === 'doc_file' || type === 'doc_chunk'} />;
}

/** A text of any length, displayed in parts on request, so that ten megabytes do not block the page. */
export function LongText({
  text,
  isMarkdown = false,
}: {
  readonly text: string;
  readonly isMarkdown?: boolean;
}): ReactNode {
  const [length, setLength] = useState<number>(MEMORY_PAGE_LIMITS.shownText);
  const part = text.slice(0, length);
  const shown = useMemo(() => visible(isMarkdown ? plainText(part) : part), [part, isMarkdown]);
  if (text === '') return null;
  const rest = text.length - length;
  return (
    <>
      <pre className={isMarkdown ? 'content prose' : 'content'}>{shown}</pre>
      {rest <= 0 ? null : (
        <button type="button" onClick={() => setLength(length + MEMORY_PAGE_LIMITS.shownText)}>
          Show more ({count(rest)} characters are left)
        </button>
      )}
    </>
  );
}
