import type { ReactNode } from 'react';
import { outcomeOfFields } from '../../../core/outcome.ts';
import { visible } from '../../shared/visible.ts';
import { MARKS, statusOf } from '../model/fields.ts';
import type { Entry } from '../model/requests.ts';

/** The status of a request with the symbol of its outcome: a response with status 200 may report a failed call. */
export function Status({
  entry,
  isShort = false,
}: {
  readonly entry: Entry;
  readonly isShort?: boolean;
}): ReactNode {
  const status = statusOf(entry);
  const { outcome, problem } = outcomeOfFields(entry.fields);
  const isHidden = outcome === 'bad' && status > 0 && status < 400;
  return (
    <span className={outcome} title={problem === undefined ? undefined : visible(problem)}>
      {MARKS[outcome]} {status === 0 ? 'none' : status}
      {isHidden ? <span className={isShort ? 'unseen' : ''}> failed</span> : null}
    </span>
  );
}
