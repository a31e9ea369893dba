// npm run bench tail -- [--rounds 5] [--seconds 4] [--only get,chat,stream,tools] [--connections 32,256] [--bin NAME=PATH ...]
// [--node-args=--max-semi-space-size=8] [--pauses 20]
// Latency at the end of the distribution and memory, compared with the bare relay; then the longest turns of the event
// loop, with the garbage collections in each.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { number, numbers, readOptions, someOf, text, texts } from './harness/options.mjs';
import {
  gatewayBuilds,
  LOAD_CORE,
  pinSelf,
  residentMiB,
  root,
  scratchFolder,
  startGateway,
  startPeer,
} from './harness/processes.mjs';
import { conditions, table } from './harness/report.mjs';
import { interleave, load, median, ratio } from './harness/rounds.mjs';
import { GET, gatewayConfig } from './http-cases.mjs';
import { llmConfig, requestOf, WORKLOADS } from './llm-cases.mjs';
import { mcpConfig, mcpRequest, openSession, stdioServer } from './mcp-case.mjs';

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

const at = (path, request) => async (_name, port) => ({ ...request, url: `http://127.0.0.1:${port}${path}` });
const chat = (workload) => ({
  mock: 'llm-upstream.mjs',
  relay: 'llm-relay.mjs',
  config: llmConfig,
  request: at('/v1/chat/completions', requestOf(workload)),
});

/** What is asked, of which relay, and how the gateway is configured with the address of the upstream. */
const CASES = {
  get: {
    mock: 'upstream.mjs',
    relay: 'bare-relay.mjs',
    config: (upstream) => gatewayConfig(upstream, []),
    request: at('/v1/items', GET),
  },
  chat: chat(WORKLOADS.small),
  stream: chat(WORKLOADS.stream),
  tools: {
    relay: 'mcp-relay.mjs',
    config: () => mcpConfig(),
    request: async (name, port) =>
      mcpRequest(await openSession(name, port, name === 'bare relay' ? '/' : '/mcp')),
  },
};

/** Starts the relay and each gateway for one case, measures, and stops them: memory is that of one kind of load. */
async function withCase(name, options, measure) {
  const { mock, relay, config, request } = CASES[name];
  const running = [];
  const keep = async (starting) => {
    running.push(await starting);
    return running.at(-1);
  };
  try {
    const upstream =
      mock === undefined ? undefined : `127.0.0.1:${(await keep(startPeer(mock, [], LOAD_CORE))).port}`;
    const file = join(folder, `${name}.yaml`);
    writeFileSync(file, JSON.stringify(config(upstream)));
    const target = upstream === undefined ? stdioServer : `http://${upstream}`;
    const started = [['bare relay', await keep(startPeer(relay, [target], undefined))]];
    for (const [build, bin] of await gatewayBuilds(values.bin))
      started.push([build, await keep(startGateway(bin, file, options.nodeArgs, options.start))]);
    const cases = [];
    for (const [caseName, { port, pid }] of started)
      cases.push({
        name: caseName,
        idle: residentMiB(pid),
        request: { ...(await request(caseName, port)), pid, connections: options.connections },
      });
    return await measure(cases);
  } finally {
    await Promise.all(running.map((process) => process.stop()));
  }
}

/** Of a stream the time between two reads with events, of everything else the time of a request. */
const latencies = (run) => run.gap ?? run;

function rowsOf(name, connections, cases, figures) {
  const reference = figures.get(cases[0].name);
  return cases.map((entry) => {
    const runs = figures.get(entry.name);
    const ms = (figure) => (median(runs.map((run) => figure(latencies(run)))) / 1000).toFixed(2);
    const times = (figure) => `${ratio(runs, reference, figure).toFixed(2)} ×`;
    return [
      `${name}, c=${connections}: ${entry.name}`,
      times((run) => run.rate),
      times((run) => 1 / run.cpu),
      ms((run) => run.p50),
      ms((run) => run.p99),
      times((run) => latencies(run).p99),
      ms((run) => run.p999),
      ms((run) => run.max),
      entry.idle.toFixed(0),
      residentMiB(entry.request.pid).toFixed(0),
    ];
  });
}

/** The longest turns of the gateway's event loop while it was loaded, the collections in them, and the share of all time. */
async function pausesOf(name, connections) {
  const file = join(folder, `${name}-pauses.json`);
  const observer = join(root, 'bench/harness/pauses.mjs');
  const options = {
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
      ...(await withCase(name, { connections, nodeArgs }, async (cases) =>
        rowsOf(name, connections, cases, await interleave(cases, settings)),
      )),
    );
console.log(
  table(
    ['', 'rate', 'capacity', 'p50 ms', 'p99 ms', 'p99', 'p99.9 ms', 'max ms', 'idle MiB', 'RSS MiB'],
    rows,
  ),
);
if (values.pauses > 0)
  for (const name of only)
    console.log(`\n${name}, c=32: the longest turns of the event loop\n\n${await pausesOf(name, 32)}`);
