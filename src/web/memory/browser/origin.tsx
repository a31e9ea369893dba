import type { ReactNode } from 'react';
import { time } from '../../shared/format.ts';
import { Link } from '../../shared/router.tsx';
import { visible } from '../../shared/visible.ts';
import type { Entity, Surroundings } from '../model.ts';

/** Where an entity came from, in words, with a link to what it is a part of. */
export function Origin({
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
  const from = field('origin') === 'docs_dir' ? 'in the docs folder' : 'stored by a call';
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
