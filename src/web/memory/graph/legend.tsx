import type { ReactNode } from 'react';
import { entryIn } from '../../../core/foreign.ts';
import { count } from '../../shared/format.ts';
import { ENTITY_TYPES, type EntityType, RELATION_TYPES, type RelationType } from '../model.ts';
import type { GraphData } from './load.ts';
import { DASHES, OTHER_DASH } from './paint.ts';

/** Relations that agents have named. */
const OTHER = 'other relations';

function dashOf(type: RelationType | typeof OTHER): readonly number[] {
  return type === OTHER ? OTHER_DASH : DASHES[type];
}

/** The meaning of shapes and lines in the drawing, with the number of each. */
export function Legend({ data: { nodes, edges } }: { readonly data: GraphData }): ReactNode {
  const entities = Map.groupBy(nodes, ({ type }) => type);
  const relations = Map.groupBy(
    edges,
    ({ type }): RelationType | typeof OTHER => RELATION_TYPES.find((each) => each === type) ?? OTHER,
  );
  return (
    <ul className="legend" aria-label="Legend">
      {ENTITY_TYPES.filter((type) => entities.has(type)).map((type) => (
        <li key={type}>
          <Mark type={type} /> {type} <span className="quiet">{count(entities.get(type)?.length ?? 0)}</span>
        </li>
      ))}
      {([...RELATION_TYPES, OTHER] as const)
        .filter((type) => relations.has(type))
        .map((type) => (
          <li key={type}>
            <svg width="36" height="12" aria-hidden="true">
              <line x1="0" y1="6" x2="28" y2="6" className="line" strokeDasharray={dashOf(type).join(' ')} />
              <polygon points="28,2 36,6 28,10" className="tip" />
            </svg>{' '}
            {type} <span className="quiet">{count(relations.get(type)?.length ?? 0)}</span>
          </li>
        ))}
      {edges.length === 0 ? null : <li className="quiet">thicker: higher weight</li>}
    </ul>
  );
}

const POINTS: Readonly<Record<EntityType, string>> = {
  workspace: '2,2 12,2 12,12 2,12',
  doc_file: '',
  doc_chunk: '7,1 13,12 1,12',
  chat_message: '7,0 14,7 7,14 0,7',
  entity: '7,13 13,2 1,2',
};

/** The shape of a type, as in the drawing: a circle for one that a later version has stored. */
export function Mark({ type }: { readonly type: string }): ReactNode {
  const points = entryIn(POINTS, type) ?? '';
  return (
    <svg width="14" height="14" aria-hidden="true" className={`mark ${type}`}>
      {points === '' ? <circle cx="7" cy="7" r="6" /> : <polygon points={points} />}
    </svg>
  );
}
