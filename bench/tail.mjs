// npm run bench tail -- [--rounds 5] [--seconds 4] [--only get,chat,stream,tools] [--connections 32,256] [--bin NAME=PATH ...]
// [--node-args=--max-semi-space-size=8] [--pauses 20]
// Latency at the end of the distribution and memory, compared with the bare relay; then the longest turns of the event
// loop, with the garbage collections in each.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { number, numbers, readOptions, someOf, text, texts } from './harness/options.mjs';
import { gatewayBuilds, pinSelf, root, scratchFolder } from './harness/processes.mjs';
import { conditions, table } from './harness/report.mjs';
import { interleave, load, median } from './harness/rounds.mjs';
import { COLUMNS, rowsOf, withCase } from './latency-cases.mjs';

const values = readOptions({
  rounds: number(5),
  seconds: number(4, 0.1),
  only: someOf(['get', 'chat', 'stream', 'tools']),
  connections: numbers(32, 256),
  bin: texts(),
  'node-args': text(),
  /** How many of the longest turns are printed; 0: none. */
  pauses: number(20, 0),
});
const { rounds, seconds, only } = values;
const settings = { rounds, seconds };
const nodeArgs = (values['node-args'] ?? '').split(' ').filter(Boolean);
const folder = scratchFolder();

const gateways = await gatewayBuilds(values.bin);

/** The longest turns of the gateway's event loop while it was loaded, the collections in them, and the share of all time. */
async function pausesOf(name, connections) {
  const file = join(folder, `${name}-pauses.json`);
  const observer = join(root, 'bench/harness/pauses.mjs');
  const options = {
    folder,
    gateways,
    connections,
    nodeArgs: [...nodeArgs, '--import', observer],
    start: { env: { AGCTL_BENCH_PAUSES: file } },
  };
  let from = 0;
  await withCase(name, options, async (cases) => {
    const { request } = cases[1];
    await load({ ...request, warmup: 8, seconds: 1 });
    from = performance.timeOrigin + performance.now();
    await load({ ...request, warmup: 0, seconds: settings.seconds * 3 });
  });
  const { timeOrigin, turns, collections } = JSON.parse(readFileSync(file, 'utf8'));
  const seen = ({ at: start }) => timeOrigin + start >= from;
  const during = ({ at: start, ms }) =>
    collections.filter((each) => each.at < start + ms && each.at + each.ms > start);
  const longest = turns
    .filter(seen)
    .sort((a, b) => b.ms - a.ms)
    .slice(0, values.pauses);
  const rows = longest.map((turn) => {
    const causes = during(turn).map(({ kind, ms }) => `${kind} ${ms.toFixed(1)}`);
    const collected = during(turn).reduce((sum, { ms }) => sum + ms, 0);
    return [turn.ms.toFixed(1), (turn.ms - collected).toFixed(1), causes.join(', ') || '–'];
  });
  const counts = Map.groupBy(collections.filter(seen), ({ kind }) => kind);
  const totals = [...counts].map(([kind, all]) => {
    const lengths = all.map(({ ms }) => ms);
    return `${kind}: ${all.length}, median ${median(lengths).toFixed(1)} ms, longest ${Math.max(...lengths).toFixed(1)} ms`;
  });
  return `${table(['turn ms', 'without collections', 'collections'], rows)}\n${totals.join('; ')}`;
}

pinSelf();
console.log(conditions({ ...settings, connections: values.connections.join() }, 'latency and memory'));
const rows = [];
for (const name of only)
  for (const connections of values.connections)
    rows.push(
      ...(await withCase(name, { folder, gateways, connections, nodeArgs }, async (cases) =>
        rowsOf(name, connections, cases, await interleave(cases, settings)),
      )),
    );
console.log(table(COLUMNS, rows));
if (values.pauses > 0)
  for (const name of only)
    console.log(`\n${name}, c=32: the longest turns of the event loop\n\n${await pausesOf(name, 32)}`);
