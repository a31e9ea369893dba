import { readEvent } from './read-event.ts';

/** Says of each event of a stream or a file which trace it belongs to, counted from 0 in the order of their beginnings. */
export interface TraceSorter {
  of(json: unknown): number;
  /** The trace of a request that has been seen. */
  known(requestId: string): number | undefined;
  /** How many traces there are. */
  readonly count: number;
}

/**
 * Several requests may come mixed: their events carry `requestId`. Without ids they come one after another, each with
 * `requestStarted` first; an id that starts again, after a restart of the gateway, is another request, too.
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
