// npm run bench profile -- [--case plain|policies|mcp|post|llm|llm-large|llm-stream|llm-translated] [--connections 32] [--seconds 6] [--top 25] [--bin PATH] [--keep FILE]
// Loads one gateway under V8's sampling profiler and prints where its time went, by function and by file.
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { number, oneOf, readOptions, text } from './harness/options.mjs';
import {
  gatewayBuilds,
  LOAD_CORE,
  pinSelf,
  scratchFolder,
  startGateway,
  startPeer,
} from './harness/processes.mjs';
import { table } from './harness/report.mjs';
import { load } from './harness/rounds.mjs';
import { GET, gatewayConfig, POLICY_NAMES, POST } from './http-cases.mjs';
import { llmConfig, requestOf, WORKLOADS } from './llm-cases.mjs';
import { mcpConfig, mcpRequest, openSession } from './mcp-case.mjs';

const {
  case: chosen,
  connections,
  seconds,
  top,
  bin: build,
  keep,
} = readOptions({
  case: oneOf(['plain', 'policies', 'mcp', 'post', 'llm', 'llm-large', 'llm-stream', 'llm-translated']),
  connections: number(32),
  seconds: number(6, 0.1),
  top: number(25),
  bin: text(),
  keep: text(),
});
const folder = scratchFolder();

/** Configuration, and the request once the port is known. */
const CASES = {
  plain: (upstream) => [gatewayConfig(upstream, []), httpRequest(GET)],
  policies: (upstream) => [gatewayConfig(upstream, POLICY_NAMES), httpRequest(GET)],
  post: (upstream) => [gatewayConfig(upstream, []), httpRequest(POST)],
  llm: (upstream) => [llmConfig(upstream), llmRequest(WORKLOADS.small)],
  'llm-large': (upstream) => [llmConfig(upstream), llmRequest(WORKLOADS.large)],
  'llm-stream': (upstream) => [llmConfig(upstream), llmRequest(WORKLOADS.stream)],
  'llm-translated': (upstream) => [llmConfig(upstream), llmRequest(WORKLOADS.translated)],
  mcp: () => [mcpConfig(), async (port) => mcpRequest(await openSession('agctl', port, '/mcp'))],
};

function httpRequest(request) {
  return (port) => ({ ...request, url: `http://127.0.0.1:${port}/v1/items`, connections });
}

function llmRequest(workload) {
  return (port) => ({
    ...requestOf(workload),
    url: `http://127.0.0.1:${port}${workload.path ?? '/v1/chat/completions'}`,
    connections,
  });
}

async function record() {
  const mock = chosen.startsWith('llm') ? 'llm-upstream.mjs' : 'upstream.mjs';
  const upstream = await startPeer(mock, [], LOAD_CORE);
  try {
    const [config, requestTo] = CASES[chosen](`127.0.0.1:${upstream.port}`);
    const file = join(folder, 'gateway.yaml');
    writeFileSync(file, JSON.stringify(config));
    const [[, bin]] = await gatewayBuilds(build === undefined ? [] : [build]);
    const flags = ['--cpu-prof', `--cpu-prof-dir=${folder}`, '--cpu-prof-interval=200'];
    const gateway = await startGateway(bin, file, flags);
    try {
      const request = { ...(await requestTo(gateway.port)), pid: gateway.pid };
      return await load({ ...request, warmup: 3, seconds });
    } finally {
      await gateway.stop();
    }
  } finally {
    await upstream.stop();
  }
}

/** Self time in µs by function and by file, within the loaded seconds before the end, without idle time. */
function selfTimes({ nodes, samples, timeDeltas, startTime, endTime }) {
  const byId = new Map(nodes.map((node) => [node.id, node.callFrame]));
  const functions = new Map();
  const files = new Map();
  let total = 0;
  const add = (map, key, time) => map.set(key, (map.get(key) ?? 0) + time);
  const from = endTime - seconds * 1e6;
  let now = startTime;
  samples.forEach((id, index) => {
    now += timeDeltas[index];
    if (now < from) return;
    const { functionName, url, lineNumber } = byId.get(id);
    if (functionName === '(idle)' || functionName === '(root)') return;
    total += timeDeltas[index];
    const file = shortened(url);
    add(functions, `${functionName || '(anonymous)'} ${file}:${lineNumber + 1}`, timeDeltas[index]);
    add(files, file || functionName, timeDeltas[index]);
  });
  return { functions, files, total };
}

const shortened = (url) =>
  url
    .replace(/^.*\/node_modules\//, '')
    .replace(/^.*\/dist\//, 'agctl/')
    .replace(/^file:\/\//, '');

function ranking(map, total, count) {
  return [...map]
    .sort(([, a], [, b]) => b - a)
    .slice(0, count)
    .map(([name, time]) => [name, `${((time / total) * 100).toFixed(1)} %`]);
}

pinSelf();
const { rate } = await record();
const [name] = readdirSync(folder).filter((file) => file.endsWith('.cpuprofile'));
const profile = JSON.parse(readFileSync(join(folder, name), 'utf8'));
if (keep !== undefined) copyFileSync(join(folder, name), keep);
const { functions, files, total } = selfTimes(profile);
console.log(`${chosen}: ${rate.toFixed(0)} requests/s under the profiler\n`);
console.log(table(['function', 'self'], ranking(functions, total, top)));
console.log(`\n${table(['file', 'self'], ranking(files, total, top))}`);
