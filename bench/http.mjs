// npm run bench http -- [--rounds 3] [--seconds 4] [--connections 32] [--bin NAME=PATH ...] [--post] [--each | --plain]
//   [--no-peers] [--no-tls | --only-tls]
// Plain proxying of a 600-byte JSON reply, with 0, 1, 5 and 10 policies, compared with a bare relay, nginx and haproxy.
// HTTPS and HTTP/2 (8 connections with 4 streams) have a table of their own, from h2load, without policies.
// --post sends a body of 200 bytes; --each measures every policy alone, --plain none; --bin, given twice, compares two builds.
import { mkdirSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import {
  freePort,
  gatewayBuilds,
  isInstalled,
  LOAD_CORE,
  pinSelf,
  root,
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
    tls: { type: 'boolean', default: true },
    'only-tls': { type: 'boolean', default: false },
  },
  allowNegative: true,
});
const settings = {
  rounds: Number(values.rounds),
  seconds: Number(values.seconds),
  connections: Number(values.connections),
};
/** The certificate of the tests, for `localhost`. */
const TLS = {
  cert: join(root, 'test/kit/certificates/good.crt'),
  key: join(root, 'test/kit/certificates/server.key'),
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

/** The same proxies with TLS, each with HTTP/1.1 and HTTP/2. */
async function startTlsCases() {
  const upstream = `127.0.0.1:${(await keep(startPeer('upstream.mjs', [], LOAD_CORE))).port}`;
  const cases = [];
  const add = async (name, starting) => {
    const { pid, port } = await keep(starting);
    const url = `https://127.0.0.1:${port}/v1/items`;
    const { connections } = settings;
    const request = { ...GET, url, pid };
    cases.push({ name: `${name} HTTPS`, request: { ...request, protocol: 'h1', connections } });
    const [fewer, streams] = [Math.max(1, Math.round(connections / 4)), 4];
    cases.push({
      name: `${name} HTTP/2`,
      request: { ...request, protocol: 'h2', connections: fewer, streams },
    });
  };
  for (const [build, bin] of await gatewayBuilds(values.bin)) {
    const file = join(folder, `${running.length}-tls.yaml`);
    writeFileSync(file, JSON.stringify(gatewayConfig(upstream, [], undefined, TLS)));
    await add(build, startGateway(bin, file));
  }
  if (values.peers)
    for (const [name, args] of [
      ['nginx', nginxArgs],
      ['haproxy', haproxyArgs],
    ]) {
      if (!isInstalled(name, `apt-get install ${name}`)) continue;
      const port = await freePort();
      const own = join(folder, `${name}-tls`);
      mkdirSync(own);
      await add(name, start(name, args(own, port, upstream, TLS), { ready: port }));
    }
  return cases;
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

async function measureTls() {
  if (!isInstalled('h2load', 'apt-get install nghttp2-client')) return;
  const cases = await startTlsCases();
  for (const { name, request } of cases) {
    const { status, length } = await getWithTls(request);
    if (status !== 200 || length !== 600) throw new Error(`${name}: ${status}, ${length} bytes`);
  }
  console.log(
    `\nTLS 1.3 to the client, HTTP/1.1 to the upstream; generator h2load; ratios to the first row\n`,
  );
  console.log(compare(cases, await interleave(cases, settings)));
}

/** A request with HTTP/1.1, whatever the case uses. */
function getWithTls({ url, headers }) {
  return new Promise((resolve, reject) => {
    const asked = get(url, { headers, rejectUnauthorized: false, agent: false }, (response) => {
      let length = 0;
      response.on('data', (chunk) => {
        length += chunk.length;
      });
      response.on('end', () => resolve({ status: response.statusCode, length }));
    });
    asked.on('error', reject);
  });
}

async function measurePlain() {
  const cases = await startCases();
  await check(cases);
  console.log(conditions(settings, `${request.method}, 600-byte JSON reply, access log on a drained pipe`));
  const figures = await interleave(cases, settings);
  const rows = cases.map(({ name, policies }) => ({ name, policies, runs: figures.get(name) }));
  console.log(compare(cases, figures));
  if (!values.plain) console.log(`\n${policyCosts(rows)}`);
}

try {
  pinSelf();
  if (!values['only-tls']) await measurePlain();
  if (values.tls) await measureTls();
} finally {
  await Promise.all(running.map((process) => process.stop()));
}
