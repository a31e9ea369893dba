import type { ReactNode } from 'react';
import { ENTITY_TYPES, type EntityType, RELATION_TYPES } from '../model.ts';
import { DASHES } from './paint.ts';

/** What the shapes and lines of the drawing mean. */
export function Legend(): ReactNode {
  return (
    <ul className="legend">
      {ENTITY_TYPES.map((type) => (
        <li key={type}>
          <Mark type={type} /> {type}
        </li>
      ))}
      {RELATION_TYPES.map((type) => (
        <li key={type}>
          <svg width="32" height="12" aria-hidden="true">
            <line x1="0" y1="6" x2="32" y2="6" className="line" strokeDasharray={DASHES[type].join(' ')} />
          </svg>{' '}
          {type}
        </li>
      ))}
    </ul>
  );
}

const POINTS: Readonly<Record<EntityType, string>> = {
  workspace: '2,2 12,2 12,12 2,12',
  doc_file: '',
  doc_chunk: '7,1 13,12 1,12',
  chat_message: '7,0 14,7 7,14 0,7',
};

/** The shape of a type, as the drawing has it. */
export function Mark({ type }: { readonly type: EntityType }): ReactNode {
  return (
    <svg width="14" height="14" aria-hidden="true" className={`mark ${type}`}>
      {POINTS[type] === '' ? <circle cx="7" cy="7" r="6" /> : <polygon points={POINTS[type]} />}
    </svg>
  );
}
