import { LIMITS } from '../../../core/limits.ts';
import { addEvent, EMPTY_TRACE, type TraceModel } from '../../../core/trace-model.ts';
import { readEventStream } from '../../shared/event-stream.ts';
import type { KeptTrace } from '../trace/traces.ts';

/** The header by which the trace of a request is told from others. It goes on to the backend; it says nothing. */
const HEADER = 'x-agctl-playground';

export interface Watched {
  /** To be sent along. */
  readonly headers: Readonly<Record<string, string>>;
  stop(): void;
}

let count = 0;

/**
 * Watches for one request, and tells of its trace as it grows. Resolves when the gateway is ready. What goes wrong
 * with the watching is no reason not to send the request: `failed` says it.
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
          model = addEvent(model, parsed(data));
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

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
