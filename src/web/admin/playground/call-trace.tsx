import type { ReactNode } from 'react';
import { visible } from '../../shared/visible.ts';
import { TraceView } from '../trace/trace-view.tsx';
import type { KeptTrace } from '../trace/traces.ts';

/** The trace of a request from a playground. */
export function CallTrace({
  trace,
  problem,
  isOpen = true,
}: {
  readonly trace: KeptTrace | undefined;
  readonly problem: string;
  readonly isOpen?: boolean;
}): ReactNode {
  return (
    <details className="panel" open={isOpen}>
      <summary>Trace of this request</summary>
      {problem === '' ? null : <p className="warn">! It was not traced: {visible(problem)}</p>}
      {trace === undefined ? (
        problem === '' && <p className="quiet">Waiting for the first step …</p>
      ) : (
        <TraceView key={trace.id} trace={trace} />
      )}
    </details>
  );
}
