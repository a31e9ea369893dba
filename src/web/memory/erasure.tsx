import type { ReactNode } from 'react';
import { count, counted, time } from '../shared/format.ts';
import { visible } from '../shared/visible.ts';
import type { Erasure } from './model.ts';

const ONE = {
  entities: 'entity',
  observations: 'observation',
  relations: 'relation',
  turns: 'turn',
  documents: 'document',
} as const;

/** `2 entities, 1 turn`; empty if there is nothing. */
export function amountOf({ counts }: Erasure): string {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of a constant
  return (Object.keys(ONE) as (keyof typeof ONE)[])
    .filter((kind) => counts[kind] > 0)
    .map((kind) => counted(counts[kind], ONE[kind], kind))
    .join(', ');
}

/** Everything that a deletion would delete. */
export function ErasureList({ erasure }: { readonly erasure: Erasure }): ReactNode {
  const { counts, entities, observations, turns, documents, truncated, note } = erasure;
  return (
    <>
      <div className="erasure">
        <Kind title="Entities" total={counts.entities} items={entities.map(visible)} />
        <Kind
          title="Observations"
          total={counts.observations}
          items={observations.map(
            ({ entityName, observation }) => `${visible(entityName)}: ${visible(observation)}`,
          )}
        />
        <Kind
          title="Turns"
          total={counts.turns}
          items={turns.map(
            ({ sessionId, role, createdAt, excerpt }) =>
              `${visible(sessionId)}, ${role}, ${time(createdAt)}: ${visible(excerpt)}`,
          )}
        />
        <Kind
          title="Documents"
          total={counts.documents}
          items={documents.map(({ title, key }) =>
            title === key ? visible(key) : `${visible(title)} (${visible(key)})`,
          )}
        />
      </div>
      {truncated ? <p className="note">! This is only a part: repeat it for the rest.</p> : null}
      {note === undefined ? null : <p className="note">! {visible(note)}.</p>}
    </>
  );
}

function Kind({
  title,
  total,
  items,
}: {
  readonly title: string;
  readonly total: number;
  readonly items: readonly string[];
}): ReactNode {
  if (total === 0) return null;
  return (
    <details open={total <= 10}>
      <summary>
        {title}: {count(total)}
      </summary>
      <ul className="erased">
        {items.map((item, place) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: equal texts are possible, and the list does not change.
          <li key={place}>{item}</li>
        ))}
        {total > items.length ? <li className="quiet">and {count(total - items.length)} more</li> : null}
      </ul>
    </details>
  );
}
