// npm run bench http -- [--rounds 3] [--seconds 4] [--connections 32] [--bin NAME=PATH ...] [--post] [--each | --plain] [--no-peers]
// Plain proxying of a 600-byte JSON reply, with 0, 1, 5 and 10 policies, compared with a bare relay, nginx and haproxy.
// --post sends a body of 200 bytes; --each measures every policy alone, --plain none; --bin, given twice, compares two builds.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import {
  freePort,
  gatewayBuilds,
  isInstalled,
  LOAD_CORE,
  pinSelf,
  scratchFolder,
  start,
  startGateway,
  startPeer,
} from './harness/processes.mjs';
import { compare, conditions, table } from './harness/report.mjs';
import { interleave, median } from './harness/rounds.mjs';
import { GET, gatewayConfig, haproxyArgs, nginxArgs, POLICY_NAMES, POST } from './http-cases.mjs';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '4' },
    connections: { type: 'string', default: '32' },
    bin: { type: 'string', multiple: true },
    post: { type: 'boolean', default: false },
    each: { type: 'boolean', default: false },
    plain: { type: 'boolean', default: false },
    peers: { type: 'boolean', default: true },
  },
  allowNegative: true,
});
const settings = {
  rounds: Number(values.rounds),
  seconds: Number(values.seconds),
  connections: Number(values.connections),
};
const folder = scratchFolder();
const running = [];
const keep = async (starting) => {
  const process = await starting;
  running.push(process);
  return process;
};

const request = values.post ? POST : GET;

/** Policies of each case by name, starting with the plain case. */
function policyCases() {
  const steps = [0, 1, 5, 10].map((count) => [
    count === 0 ? 'plain' : `${count} ${count === 1 ? 'policy' : 'policies'}`,
    POLICY_NAMES.slice(0, count),
  ]);
  if (values.plain) return steps.slice(0, 1);
  return values.each ? [steps[0], ...POLICY_NAMES.map((name) => [name, [name]])] : steps;
}

async function startCases() {
  const upstream = `127.0.0.1:${(await keep(startPeer('upstream.mjs', [], LOAD_CORE))).port}`;
  const cases = [];
  const add = async (name, starting, policies) => {
    const { pid, port } = await keep(starting);
    const url = `http://127.0.0.1:${port}/v1/items`;
    cases.push({ name, policies, request: { ...request, url, pid, connections: settings.connections } });
  };
  await add('bare relay', startPeer('bare-relay.mjs', [`http://${upstream}`]));
  for (const [build, bin] of await gatewayBuilds(values.bin)) {
    for (const [label, names] of policyCases()) {
      await add(`${build} ${label}`, startGateway(bin, configFile(upstream, names)), {
        build,
        count: names.length,
      });
    }
    if (!values.each && !values.plain) {
      const file = configFile(upstream, [], upstream);
      await add(`${build} extAuthz`, startGateway(bin, file), { build, count: 1 });
    }
  }
  if (values.peers) await startPeers(add, upstream);
  return cases;
}

function configFile(upstream, names, extAuthz) {
  const file = join(folder, `${running.length}.yaml`);
  writeFileSync(file, JSON.stringify(gatewayConfig(upstream, names, extAuthz)));
  return file;
}

async function startPeers(add, upstream) {
  for (const [name, args] of [
    ['nginx', nginxArgs],
    ['haproxy', haproxyArgs],
  ]) {
    if (!isInstalled(name, `apt-get install ${name}`)) continue;
    const port = await freePort();
    await add(name, start(name, args(folder, port, upstream), { ready: port }));
  }
}

/** Every case must relay the mock's body; a proxy that answers anything else is not measured. */
async function check(cases) {
  for (const {
    name,
    request: { url, method, headers, body },
  } of cases) {
    const response = await fetch(url, { method, headers, body });
    const text = await response.text();
    if (response.status !== 200 || text.length !== 600)
      throw new Error(`${name}: ${response.status} ${text}`);
  }
}

/** What policies add to the plain case of their build, in µs of the measured core per request. */
function policyCosts(rows) {
  const plain = (build) =>
    rows.find(({ policies }) => policies?.build === build && policies.count === 0).runs;
  const costs = rows
    .filter(({ policies }) => policies !== undefined && policies.count > 0)
    .map(({ name, policies: { build, count }, runs }) => {
      const added = (figure) => median(runs.map((run, round) => figure(run) - figure(plain(build)[round])));
      const cpu = added((run) => run.cpu);
      return [name, cpu.toFixed(1), (cpu / count).toFixed(1), added((run) => 1e6 / run.rate).toFixed(1)];
    });
  return table(['', 'CPU µs added', 'per policy', '1/rate µs added'], costs);
}

try {
  pinSelf();
  const cases = await startCases();
  await check(cases);
  console.log(conditions(settings, `${request.method}, 600-byte JSON reply, access log on a drained pipe`));
  const figures = await interleave(cases, settings);
  const rows = cases.map(({ name, policies }) => ({ name, policies, runs: figures.get(name) }));
  console.log(compare(cases, figures));
  if (!values.plain) console.log(`\n${policyCosts(rows)}`);
} finally {
  await Promise.all(running.map((process) => process.stop()));
}
