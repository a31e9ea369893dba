// npm run bench reload -- [--reloads 1000] [--pace 0] [--rate 1000] [--streams 200] [--workers 1] [--bin PATH]
// Reloads under load: half of them change a route, 5 % contain a mistake. No request may fail, and no stream of an
// unchanged route may end; what the gateway holds must be the same before and after. Otherwise exits with code 1.
// `--pace`: ms between reloads; 0 is one after another.
import { readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { createHistogram } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Agent, request } from 'undici';
import { collectGarbage } from './harness/inside.mjs';
import { freePort, gatewayBuilds, scratchFolder, startGateway } from './harness/processes.mjs';
import { table } from './harness/report.mjs';

const { values } = parseArgs({
  options: {
    reloads: { type: 'string', default: '1000' },
    pace: { type: 'string', default: '0' },
    rate: { type: 'string', default: '1000' },
    streams: { type: 'string', default: '200' },
    workers: { type: 'string', default: '1' },
    bin: { type: 'string' },
  },
});
const reloads = Number(values.reloads);
const pace = Number(values.pace);
const rate = Number(values.rate);
const streamCount = Number(values.streams);
const workers = Number(values.workers);

/** Answers immediately; a stream gets an event each second, and never ends. */
async function startUpstream() {
  const streams = new Set();
  const server = createServer((incoming, response) => {
    if (!incoming.url.startsWith('/stream')) return void response.end('ok');
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    streams.add(response);
    response.on('close', () => streams.delete(response));
  });
  setInterval(() => {
    for (const response of streams) response.write('data: tick\n\n');
  }, 1000).unref();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();
  return server.address().port;
}

const prefix = (pathPrefix) => [{ path: { pathPrefix } }];

function config(version, upstream, adminPort) {
  const host = `127.0.0.1:${upstream}`;
  return JSON.stringify({
    config: { workers, adminAddr: `127.0.0.1:${adminPort}`, statsAddr: 'off', readinessAddr: 'off' },
    gateways: {
      default: {
        port: 0,
        routes: [
          { name: 'streams', matches: prefix('/stream'), backends: [{ host }] },
          {
            name: 'changing',
            matches: prefix('/changing'),
            policies: {
              responseHeaderModifier: { set: { 'x-version': String(version) } },
              authorization: { rules: [`${version} >= 0`] },
            },
            // A different spelling of the same service, so that each version opens new connections.
            backends: [{ host: version % 2 === 0 ? host : `localhost:${upstream}` }],
          },
          {
            name: 'limited',
            policies: { localRateLimit: [{ maxTokens: 1_000_000, fillInterval: '1s' }] },
            backends: [{ host }],
          },
        ],
      },
    },
  });
}

const failures = [];
const latencies = { quiet: createHistogram(), reloading: createHistogram() };
let phase = 'quiet';

/** Sends requests at a fixed rate, however slow the responses are, until the returned function is called. */
function load(origin) {
  const dispatcher = new Agent({ connections: 32 });
  const open = new Set();
  const started = performance.now();
  let sent = 0;
  const one = async (path) => {
    const began = performance.now();
    try {
      const { statusCode, body } = await request(`${origin}${path}`, { dispatcher });
      const text = await body.text();
      if (statusCode !== 200 || text !== 'ok') throw new Error(`${statusCode} ${text}`);
    } catch (error) {
      failures.push(`${path}: ${error.message}`);
    }
    latencies[phase].record(Math.max(1, Math.round((performance.now() - began) * 1000)));
  };
  const timer = setInterval(() => {
    const due = ((performance.now() - started) / 1000) * rate;
    for (; sent < due; sent += 1) {
      const running = one(sent % 2 === 0 ? '/changing' : '/limited').finally(() => open.delete(running));
      open.add(running);
    }
  }, 2);
  return async () => {
    clearInterval(timer);
    await Promise.all(open);
    await dispatcher.close();
    return sent;
  };
}

const streams = { open: 0, ended: 0, events: 0 };

async function openStream(origin) {
  const dispatcher = new Agent({ bodyTimeout: 0 });
  const { body } = await request(`${origin}/stream`, { dispatcher });
  streams.open += 1;
  body.on('data', () => {
    streams.events += 1;
  });
  const ended = () => {
    streams.ended += 1;
  };
  body.on('end', ended).on('error', ended);
  return () => {
    body
      .off('end', ended)
      .off('error', ended)
      .on('error', () => undefined);
    body.destroy();
  };
}

async function reloadState(admin) {
  const { body } = await request(`${admin}/api/overview`);
  return (await body.json()).reload;
}

async function holdings(pid, admin, inspectPort) {
  await collectGarbage(inspectPort);
  const memory = await request(`${admin}/memory`);
  const heap = (await memory.body.json()).allocation_stats.heap_used;
  const { body } = await request(`${admin}/debug/tasks`);
  const timers = (await body.json()).admin.find((line) => /^ {2}Timeout:/.test(line)) ?? 'Timeout: 0';
  return {
    'heap MiB': (heap / 2 ** 20).toFixed(1),
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    timers: Number(/\d+/.exec(timers)[0]),
  };
}

const [[, bin]] = await gatewayBuilds(values.bin === undefined ? [] : [values.bin]);
const upstream = await startUpstream();
const adminPort = await freePort();
const admin = `http://127.0.0.1:${adminPort}`;
const file = join(scratchFolder(), 'gateway.yaml');
writeFileSync(file, config(0, upstream, adminPort));
const inspectPort = await freePort();
const gateway = await startGateway(bin, file, [`--inspect=127.0.0.1:${inspectPort}`]);
const origin = `http://127.0.0.1:${gateway.port}`;

/** Writes a version and waits until the gateway has loaded or refused it. */
async function reload(version) {
  const before = await reloadState(admin);
  const isWrong = version % 20 === 0;
  const text = config(version % 2 === 0 ? 0 : version, upstream, adminPort);
  writeFileSync(file, isWrong ? `${text}]` : `# ${version}\n${text}`);
  process.kill(gateway.pid, 'SIGHUP');
  for (;;) {
    const now = await reloadState(admin);
    if (
      isWrong ? now.failure !== undefined && now.failure.at !== before.failure?.at : now.count > before.count
    )
      return;
    // Polling also costs the gateway time.
    await delay(20);
  }
}

const stop = load(origin);
const closeStreams = await Promise.all(Array.from({ length: streamCount }, () => openStream(origin)));
for (let version = 1; version <= 19; version += 1) await reload(version);
latencies.quiet.reset();
phase = 'quiet';
await delay(5_000);
const before = await holdings(gateway.pid, admin, inspectPort);
phase = 'reloading';
const began = performance.now();
for (let version = 21; version <= reloads + 20; version += 1) {
  await reload(version);
  if (version % 100 === 0) console.error(`${version - 20} reloads`);
  if (pace > 0) await delay(pace);
}
const seconds = (performance.now() - began) / 1000;
phase = 'quiet';
const p99 = (histogram) => `${(histogram.percentile(99) / 1000).toFixed(1)} ms`;
const quiet = p99(latencies.quiet);
await delay(12_000);
const after = await holdings(gateway.pid, admin, inspectPort);
const sent = await stop();
for (const close of closeStreams) close();
await gateway.stop();

console.log(
  `${reloads} reloads in ${seconds.toFixed(1)} s (${(reloads / seconds).toFixed(1)} a second), ${sent} requests`,
);
console.log(`failed requests: ${failures.length} ${[...new Set(failures)].slice(0, 3).join('; ')}`);
console.log(`streams: ${streams.open} open, ${streams.ended} ended, ${streams.events} events`);
console.log(`p99: ${quiet} without, ${p99(latencies.reloading)} with reloads`);
console.log(
  table(
    ['', ...Object.keys(before)],
    [
      ['before', ...Object.values(before).map(String)],
      ['after', ...Object.values(after).map(String)],
    ],
  ),
);
const isFlat =
  after.descriptors <= before.descriptors + 2 &&
  after.timers <= before.timers + 2 &&
  Math.abs(after['heap MiB'] - before['heap MiB']) <= 2;
process.exit(failures.length + streams.ended === 0 && isFlat ? 0 : 1);
