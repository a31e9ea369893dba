// npm run bench llm -- [--rounds 3] [--seconds 4] [--only small,large,stream,translated,translated-stream] [--connections 32] [--bin NAME=PATH ...]
// [--no-peers] [--no-database] [--no-cache] [--warmup 8]
// Chat completions and streams, compared with a minimal relay, Portkey and nginx.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { peerScript } from './harness/npm-peers.mjs';
import {
  freePort,
  gatewayBuilds,
  isInstalled,
  LOAD_CORE,
  pinSelf,
  residentMiB,
  scratchFolder,
  start,
  startGateway,
  startPeer,
} from './harness/processes.mjs';
import { conditions, table } from './harness/report.mjs';
import { interleave, median, ratio } from './harness/rounds.mjs';
import { llmConfig, nginxArgs, portkeyHeaders, requestOf, WORKLOADS } from './llm-cases.mjs';
import { DATABASE_WORKLOADS, databaseCosts, startWithDatabase } from './llm-keys.mjs';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '4' },
    only: { type: 'string', default: Object.keys(WORKLOADS).join(',') },
    /** Seconds before the first round. */
    warmup: { type: 'string', default: '8' },
    connections: { type: 'string' },
    bin: { type: 'string', multiple: true },
    peers: { type: 'boolean', default: true },
    /** Also gateways with `config.database`, which old builds do not have, and what records and budgets cost. */
    database: { type: 'boolean', default: true },
    /** Also gateways that answer from `cache` of the model, which old builds do not have. */
    cache: { type: 'boolean', default: true },
  },
  allowNegative: true,
});
const settings = {
  rounds: Number(values.rounds),
  seconds: Number(values.seconds),
  warmup: Number(values.warmup),
};
const folder = scratchFolder();
const running = [];
const keep = async (starting) => {
  const process = await starting;
  running.push(process);
  return process;
};

/** Every measured gateway: name, process, port, headers. The first is the reference of ratios. */
async function startAll() {
  const mock = await keep(startPeer('llm-upstream.mjs', [], LOAD_CORE));
  const upstream = `127.0.0.1:${mock.port}`;
  const all = [];
  const add = async (name, starting, headers = {}) => all.push({ name, headers, ...(await keep(starting)) });
  await add('bare relay', startPeer('llm-relay.mjs', [`http://${upstream}`]));
  const builds = await gatewayBuilds(values.bin);
  for (const [name, bin] of builds) {
    const file = join(folder, `${name}.yaml`);
    writeFileSync(file, JSON.stringify(llmConfig(upstream)));
    await add(name, startGateway(bin, file));
    all.at(-1).translates = true;
    if (values.cache) {
      const cached = join(folder, `${name}-cache.yaml`);
      writeFileSync(cached, JSON.stringify(llmConfig(upstream, { cache: {} })));
      await add(`${name}, answer of the cache`, startGateway(bin, cached));
      all.at(-1).only = ['small', 'large'];
    }
    if (!values.database || !values.only.split(',').some((workload) => DATABASE_WORKLOADS.includes(workload)))
      continue;
    for (const gateway of await startWithDatabase(bin, upstream, folder, name)) {
      running.push(gateway);
      all.push({ headers: {}, ...gateway, only: DATABASE_WORKLOADS });
    }
  }
  const portkey = values.peers ? peerScript('@portkey-ai/gateway') : undefined;
  if (portkey !== undefined) {
    const port = await freePort();
    const args = [portkey, '--headless', `--port=${port}`];
    // Portkey was written for older versions of Node.js.
    const node = process.env.AGCTL_BENCH_PEER_NODE ?? process.execPath;
    await add('Portkey', start(node, args, { ready: port }), portkeyHeaders(upstream));
  }
  if (values.peers && isInstalled('nginx', 'apt-get install nginx')) {
    const port = await freePort();
    await add('nginx', start('nginx', nginxArgs(folder, port, upstream), { ready: port }));
  }
  return { all, mock, builds: builds.map(([name]) => name) };
}

function casesOf({ all, mock }, workload, connections) {
  const { plain } = workload;
  const measured = all.filter(({ only }) => only?.some((name) => WORKLOADS[name] === workload) ?? true);
  const toCase = ({ name, port, pid, headers, keysFile, translates = false }) => {
    const request = requestOf(plain === undefined || translates ? workload : WORKLOADS[plain]);
    const url = `http://127.0.0.1:${port}${request.path}`;
    return {
      name,
      request: { ...request, headers: { ...request.headers, ...headers }, url, pid, connections, keysFile },
    };
  };
  // The provider alone, to compute what a gateway adds.
  return [...measured, { name: 'no gateway', headers: {}, ...mock }].map(toCase);
}

/** The cases that can be measured; another gateway that answers anything else is left out. */
async function working(cases) {
  const kept = [];
  for (const entry of cases) {
    const { name, request } = entry;
    const response = await fetch(request.url, request);
    const text = await response.text();
    if (response.status === 200 && text.includes(request.mustContain)) kept.push(entry);
    else if (PEERS.has(name))
      console.error(`SKIPPED: ${name} cannot do this: ${response.status} ${text.slice(0, 200)}`);
    else throw new Error(`${name}: ${response.status} ${text.slice(0, 500)}`);
  }
  return kept;
}

const PEERS = new Set(['Portkey', 'nginx']);

function report(cases, figures, unit) {
  const runsOf = ({ name }) => figures.get(name);
  const reference = runsOf(cases[0]);
  const direct = runsOf(cases.at(-1));
  const added = (runs, figure) =>
    `${(median(runs.map((run, round) => figure(run) - figure(direct[round]))) / 1000).toFixed(2)}`;
  const rows = cases.slice(0, -1).map((entry) => {
    const runs = runsOf(entry);
    return [
      entry.name,
      `${(median(runs.map((run) => run.rate)) / 1000).toFixed(2)}k`,
      `${ratio(runs, reference, (run) => run.rate).toFixed(2)} ×`,
      median(runs.map((run) => run.cpu)).toFixed(1),
      // A run without responses has no cost per request.
      Number.isFinite(ratio(runs, reference, (run) => 1 / run.cpu))
        ? `${ratio(runs, reference, (run) => 1 / run.cpu).toFixed(2)} ×`
        : '–',
      `${Math.round(median(runs.map((run) => run.busy)) * 100)} %`,
      added(runs, (run) => run.p50),
      added(runs, (run) => run.p99),
      residentMiB(entry.request.pid).toFixed(0),
    ];
  });
  return table(
    ['', `${unit}/s`, 'rate', `CPU µs/${unit}`, 'capacity', 'core', 'p50 +ms', 'p99 +ms', 'RSS MiB'],
    rows,
  );
}

try {
  pinSelf();
  const started = await startAll();
  console.log(
    conditions({ ...settings, connections: 'see below' }, 'LLM gateways, access log on a drained pipe'),
  );
  console.log(
    '"+ms" is latency over that of the provider alone; of a stream, the time to its first event. The provider shares\nthe core of the generator, so that differences below zero are possible.\n',
  );
  for (const name of values.only.split(',')) {
    const workload = WORKLOADS[name];
    if (workload === undefined) throw new Error(`no workload ${name}: ${Object.keys(WORKLOADS).join(', ')}`);
    const counts = values.connections === undefined ? workload.connections : [Number(values.connections)];
    for (const connections of counts) {
      const cases = await working(casesOf(started, workload, connections));
      const figures = await interleave(cases, settings);
      console.log(`${workload.what}, c=${connections}\n`);
      console.log(`${report(cases, figures, workload.frames === undefined ? 'request' : 'event')}\n`);
      if (!values.database || !DATABASE_WORKLOADS.includes(name)) continue;
      console.log(`${started.builds.flatMap((build) => databaseCosts(build, figures)).join('\n')}\n`);
    }
  }
} finally {
  await Promise.all(running.map((process) => process.stop()));
}
