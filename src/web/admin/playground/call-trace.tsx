import type { ReactNode } from 'react';
import { jsonIn } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import { addEvent, EMPTY_TRACE, type TraceModel } from '../../../core/trace-model.ts';
import { readEventStream } from '../../shared/event-stream.ts';
import { visible } from '../../shared/visible.ts';
import { TraceView } from '../trace/trace-view.tsx';
import type { KeptTrace } from '../trace/traces.ts';

/** A header that identifies the trace of a request. It is forwarded to the backend and has no meaning there. */
const HEADER = 'x-agctl-playground';

export interface Watched {
  /** To be sent with the request. */
  readonly headers: Readonly<Record<string, string>>;
  stop(): void;
}

let count = 0;

/**
 * Watches one request and reports its trace as it grows. Resolves when the gateway is ready. A failure to watch does
 * not prevent the request: it is reported in `failed`.
 */
export function watchRequest(
  grown: (trace: KeptTrace) => void,
  failed: (problem: string) => void,
): Promise<Watched> {
  const mark = [...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(36)).join('');
  const gone = new AbortController();
  count += 1;
  const id = -count;
  const at = Date.now();
  const lines: string[] = [];
  let model: TraceModel = EMPTY_TRACE;
  const tell = (state: KeptTrace['state']): void => grown({ id, at, model, lines: [...lines], state });
  const query = new URLSearchParams({ expression: `request.headers["${HEADER}"] == "${mark}"` });
  return new Promise((resolve) => {
    const watched = { headers: { [HEADER]: mark }, stop: () => gone.abort() };
    readEventStream(
      `/debug/trace?${query}`,
      {
        opened: () => resolve(watched),
        event(data) {
          if (lines.length >= LIMITS.traceEvents) return;
          lines.push(data);
          model = addEvent(model, jsonIn(data));
          tell('live');
        },
      },
      gone.signal,
    ).then(
      () => tell('done'),
      (error: Error) => {
        if (gone.signal.aborted) return;
        failed(error.message);
        resolve({ ...watched, headers: {} });
      },
    );
  });
}

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
