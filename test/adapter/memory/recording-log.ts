import { createLog, type Log } from '../../../src/core/log.ts';

/** Keeps the lines that were logged. */
export function recordingLog(): Log & { readonly lines: string[] } {
  const lines: string[] = [];
  const log = createLog(
    { write: (line) => void lines.push(line), dropped: 0, flush: async () => undefined },
    'trace',
    'text',
  );
  return Object.assign(log, { lines });
}
