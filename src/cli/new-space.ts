import { PerformanceObserver } from 'node:perf_hooks';
import { execArgv } from 'node:process';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { LIMITS } from '../core/limits.ts';
import type { Environment } from '../core/yaml/env.ts';

/** V8 reads this factor whenever the space for new objects is about to grow. With 1 it stays as large as it is. */
const GROWTH = '--semi-space-growth-factor';

/**
 * Keeps each half of V8's space for new objects at or below `LIMITS.newSpaceHalf`, unless the user has set its size. V8 takes
 * `--max-semi-space-size` from the command line of Node.js only, which `npx @agctl/agctl` does not write; so the space is measured after
 * each collection (20 µs) and its growth is stopped. One turn of the event loop in which it doubles twice goes past the bound; requests make
 * it double within hundreds of milliseconds. V8 makes it smaller while the process is idle; then it may grow again.
 * Returns a function that ends this: the factor is V8's own again, because flags are part of the key of compiled code on disk.
 */
export function boundNewSpace({ NODE_OPTIONS = '' }: Environment): () => void {
  if ([...execArgv, NODE_OPTIONS].some((text) => /semi[-_]space[-_]size/.test(text))) return () => undefined;
  let isStopped = false;
  const setStopped = (value: boolean): void => {
    if (value === isStopped) return;
    isStopped = value;
    setFlagsFromString(`${GROWTH}=${value ? 1 : 2}`);
  };
  const observer = new PerformanceObserver(() => setStopped(2 * capacity() > LIMITS.newSpaceHalf));
  observer.observe({ entryTypes: ['gc'] });
  return () => {
    observer.disconnect();
    setStopped(false);
  };
}

/** Bytes that one half has room for; the sizes that V8 gives beside them count pages that it is about to return. */
function capacity(): number {
  const space = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space');
  return space === undefined ? 0 : space.space_used_size + space.space_available_size;
}
