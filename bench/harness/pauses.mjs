// Loaded into a measured process with `--import`: writes how long each turn of its event loop took, and which garbage
// collections ran in it, to the file in AGCTL_BENCH_PAUSES when the process ends.
import { writeFileSync } from 'node:fs';
import { constants, PerformanceObserver, performance } from 'node:perf_hooks';

/** Shorter turns are not kept. */
const SHORTEST_MS = 1;
/** The longest are kept; a minute of load has some ten thousand turns. */
const MAX_TURNS = 100_000;
const KINDS = new Map(
  Object.entries(constants)
    .filter(([name]) => /^NODE_PERFORMANCE_GC_(?:MAJOR|MINOR|INCREMENTAL|WEAKCB)$/.test(name))
    .map(([name, value]) => [value, name.slice('NODE_PERFORMANCE_GC_'.length).toLowerCase()]),
);

const collections = [];
new PerformanceObserver((list) => {
  for (const { startTime, duration, detail } of list.getEntries())
    if (collections.length < MAX_TURNS)
      collections.push({ at: startTime, ms: duration, kind: KINDS.get(detail.kind) ?? 'other' });
}).observe({ entryTypes: ['gc'] });

const turns = [];
// A timer runs once per turn of a busy loop; what lies between two calls, above its millisecond, is a turn.
let last = performance.now();
setInterval(() => {
  const now = performance.now();
  if (now - last > SHORTEST_MS + 1 && turns.length < MAX_TURNS) turns.push({ at: last, ms: now - last });
  last = now;
}, 1).unref();

process.on('exit', () => {
  const { timeOrigin } = performance;
  const file = process.env.AGCTL_BENCH_PAUSES;
  if (file !== undefined) writeFileSync(file, JSON.stringify({ timeOrigin, turns, collections }));
});
