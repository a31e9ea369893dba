import type { ReactNode } from 'react';
import { time } from '../../shared/format.ts';
import { visible } from '../../shared/visible.ts';
import { LongText } from '../graph/details.tsx';
import type { Turn } from '../model.ts';

/** Number of earlier turns that are displayed, and how much of each. */
const BEFORE = 4;
const BEFORE_LENGTH = 400;

/** The conversation up to the current turn. */
export function Conversation({
  turns,
  places,
  position,
}: {
  readonly turns: readonly Turn[];
  readonly places: readonly number[];
  readonly position: number;
}): ReactNode {
  const shown = places.slice(Math.max(0, position - BEFORE), position + 1);
  return (
    <ol className="conversation" aria-label="Conversation">
      {shown.map((place) => {
        const turn = turns[place];
        if (turn === undefined) return null;
        const isCurrent = place === places[position];
        return (
          <li key={turn.id} className={`turn ${turn.role}`} aria-current={isCurrent ? 'step' : undefined}>
            <p className="quiet">
              <strong>
                {place + 1}. {turn.role}
              </strong>
              , {visible(turn.agentId)}, <time dateTime={turn.createdAt}>{time(turn.createdAt)}</time>
            </p>
            {isCurrent ? <LongText text={turn.content} /> : <Beginning text={turn.content} />}
          </li>
        );
      })}
    </ol>
  );
}

function Beginning({ text }: { readonly text: string }): ReactNode {
  const isLong = text.length > BEFORE_LENGTH;
  return (
    <pre className="content">
      {visible(isLong ? text.slice(0, BEFORE_LENGTH) : text)}
      {isLong ? '…' : ''}
    </pre>
  );
}
