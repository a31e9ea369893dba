import { readEvent } from './read-event.ts';

/**
 * Assigns each event of a stream or a file to a trace. Traces are numbered from 0 in the order of their first events.
 */
export interface TraceSorter {
  of(json: unknown): number;
  /** The trace of a known request. */
  known(requestId: string): number | undefined;
  /** Number of traces. */
  readonly count: number;
}

/**
 * Events of several requests may be interleaved if they carry `requestId`. Without ids, each request begins with
 * `requestStarted`. An id that starts again, after a restart of the gateway, counts as another request.
 */
export function createSorter(): TraceSorter {
  const traces = new Map<string, { readonly index: number; hasStarted: boolean }>();
  let count = 0;
  return {
    of(json) {
      const event = readEvent(json);
      const id = event?.requestId ?? '';
      const isStart = event?.message.type === 'requestStarted';
      const known = traces.get(id);
      if (known !== undefined && !(isStart && known.hasStarted)) {
        known.hasStarted ||= isStart;
        return known.index;
      }
      traces.set(id, { index: count, hasStarted: isStart });
      count += 1;
      return count - 1;
    },
    known: (requestId) => traces.get(requestId)?.index,
    get count() {
      return count;
    },
  };
}
