// npm run bench trace -- [--rounds 3] [--seconds 4] [--connections 32] [--policies 5] [--bin NAME=PATH ...]
// Cost of traces for requests: no watcher, one watcher that waits for another request, 1,000 such watchers, one watcher
// and 50 that follow every request. --bin, given twice, compares two builds without watchers: one from before traces existed,
// and one with them. A request that is watched by a one-shot trace costs once, so it has no row.
import { writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { number, readOptions, texts } from './harness/options.mjs';
import {
  freePort,
  gatewayBuilds,
  LOAD_CORE,
  pinSelf,
  scratchFolder,
  startGateway,
  startPeer,
} from './harness/processes.mjs';
import { compare, conditions } from './harness/report.mjs';
import { interleave } from './harness/rounds.mjs';
import { GET, gatewayConfig, POLICY_NAMES } from './http-cases.mjs';

const { policies, bin, ...settings } = readOptions({
  rounds: number(3),
  seconds: number(4, 0.1),
  connections: number(32),
  policies: number(5, 0),
  bin: texts(),
});
const folder = scratchFolder();
const running = [];
const keep = async (starting) => {
  const started = await starting;
  running.push(started);
  return started;
};

const never = encodeURIComponent('request.path == "/never"');
const WATCHED = [
  ['no watcher', []],
  ['one waits for another path', [`?expression=${never}`]],
  ['1,000 wait for another path', Array.from({ length: 1_000 }, () => `?expression=${never}`)],
  ['one follows every request', ['?follow']],
  ['50 follow every request', Array.from({ length: 50 }, () => '?follow')],
];

/** Reads a trace and discards it, like a terminal that was left open. */
function watch(port, query) {
  return new Promise((resolve, reject) => {
    get({ port, host: '127.0.0.1', path: `/debug/trace${query}`, agent: false }, (response) => {
      response.on('error', () => undefined).once('data', resolve);
      response.resume();
    }).on('error', reject);
  });
}

async function startCases() {
  const upstream = `127.0.0.1:${(await keep(startPeer('upstream.mjs', [], LOAD_CORE))).port}`;
  const file = join(folder, 'gateway.yaml');
  writeFileSync(file, JSON.stringify(gatewayConfig(upstream, POLICY_NAMES.slice(0, policies))));
  const cases = [];
  const add = (name, { pid, port }) => {
    const url = `http://127.0.0.1:${port}/v1/items`;
    cases.push({ name, request: { ...GET, url, pid, connections: settings.connections } });
  };
  if (bin.length > 0)
    for (const [name, build] of await gatewayBuilds(bin))
      add(`build ${name}`, await keep(startGateway(build, file)));
  for (const [name, watchers] of WATCHED) {
    const tracePort = await freePort();
    const gateway = await keep(startPeer('traced-gateway.mjs', [file, String(tracePort)]));
    for (const query of watchers) await watch(tracePort, query);
    add(name, gateway);
  }
  return cases;
}

try {
  pinSelf();
  const cases = await startCases();
  const what = `GET, 600-byte JSON reply, ${policies} policies, access log on a drained pipe`;
  process.stdout.write(`${conditions(settings, what)}\n`);
  const figures = await interleave(cases, settings);
  process.stdout.write(`${compare(cases, figures)}\n`);
} finally {
  await Promise.all(running.map((started) => started.stop()));
}
process.exit();
