// npm run bench growth -- [--only routes,keys,models,tools,sessions] [--counts 1,100,1000,10000] [--rounds 3] [--seconds 2]
// [--warmup 8] [--svg FILE] [--bin PATH]
// CPU time of a request while the gateway has more and more of one kind: of routes, models and tools the last one is used,
// keys and sessions are used in turn. --svg draws the curves.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { curves } from './harness/curves.mjs';
import { number, numbers, readOptions, someOf, text } from './harness/options.mjs';
import {
  gatewayBuilds,
  LOAD_CORE,
  pinSelf,
  scratchFolder,
  startGateway,
  startPeer,
} from './harness/processes.mjs';
import { table } from './harness/report.mjs';
import { interleave, median } from './harness/rounds.mjs';
import { GET, gatewayConfig } from './http-cases.mjs';
import { llmConfig, requestOf, WORKLOADS } from './llm-cases.mjs';
import { startWithKeys } from './llm-keys.mjs';
import { mcpConfig, mcpRequest, openSession, stdioServer } from './mcp-case.mjs';

const {
  only,
  counts,
  svg,
  bin: build,
  ...settings
} = readOptions({
  only: someOf(['routes', 'keys', 'models', 'tools', 'sessions']),
  counts: numbers(1, 100, 1_000, 10_000),
  rounds: number(3),
  seconds: number(2, 0.1),
  /** Seconds before the first round. */
  warmup: number(8, 0),
  svg: text(),
  bin: text(),
});
const CONNECTIONS = 16;
const folder = scratchFolder();
const [[, bin]] = await gatewayBuilds(build === undefined ? [] : [build]);

const numbered = (count, make) => Array.from({ length: count }, (_, index) => make(index));
const chat = requestOf(WORKLOADS.small);

async function withConfig(name, config) {
  const file = join(folder, `${name}.yaml`);
  writeFileSync(file, JSON.stringify(config));
  return startGateway(bin, file, [], { env: { AGCTL_BENCH_KEY: 'sk-bench' } });
}

/** Each starts a gateway with `count` of its kind; resolves to `{ gateway, request }`. */
const KINDS = {
  async routes(count, { http }) {
    const config = gatewayConfig(http, []);
    const [route] = config.gateways.default.routes;
    config.gateways.default.routes = numbered(count, (index) => ({
      ...route,
      name: `route-${index}`,
      matches: [{ path: { pathPrefix: `/v1/items-${index}` } }],
    }));
    const gateway = await withConfig(`routes-${count}`, config);
    return { gateway, request: { ...GET, url: `http://127.0.0.1:${gateway.port}/v1/items-${count - 1}` } };
  },
  async keys(count, { llm }) {
    const gateway = await startWithKeys(bin, llm, folder, `keys-${count}`, [], count);
    const url = `http://127.0.0.1:${gateway.port}/v1/chat/completions`;
    return { gateway, request: { ...chat, url, keysFile: gateway.keysFile } };
  },
  async models(count, { llm }) {
    const config = llmConfig(llm);
    const [model] = config.llm.models;
    // From the environment, or each model would have a warning.
    model.params.apiKey = '$AGCTL_BENCH_KEY';
    config.llm.models = numbered(count, (index) => ({ ...model, name: `model-${index}` }));
    const gateway = await withConfig(`models-${count}`, config);
    const body = chat.body.replace('"bench"', JSON.stringify(`model-${count - 1}`));
    return {
      gateway,
      request: { ...chat, body, url: `http://127.0.0.1:${gateway.port}/v1/chat/completions` },
    };
  },
  async tools(count) {
    const gateway = await withConfig(
      `tools-${count}`,
      mcpConfig({ cmd: process.execPath, args: [stdioServer, String(count)] }),
    );
    const request = mcpRequest(await openSession('agctl', gateway.port, '/mcp'), CONNECTIONS);
    const tool = count === 1 ? 'echo' : `echo-${count - 1}`;
    return { gateway, request: { ...request, body: request.body.replace('"echo"', JSON.stringify(tool)) } };
  },
  async sessions(count) {
    const config = mcpConfig({ cmd: process.execPath, args: [stdioServer], shared: true });
    config.config = { ...config.config, mcp: { maxSessions: 20_000 } };
    const gateway = await withConfig(`sessions-${count}`, config);
    const sessions = [];
    while (sessions.length < count) sessions.push(await openSession('agctl', gateway.port, '/mcp'));
    const request = mcpRequest(sessions[0], CONNECTIONS);
    const sessionsFile = join(folder, `sessions-${count}`);
    writeFileSync(sessionsFile, sessions.map(({ headers }) => headers['mcp-session-id']).join('\n'));
    return { gateway, request: { ...request, sessionsFile } };
  },
};

async function measure(name, upstreams) {
  const gateways = [];
  try {
    const cases = [];
    for (const count of counts) {
      const { gateway, request } = await KINDS[name](count, upstreams);
      gateways.push(gateway);
      cases.push({
        name: String(count),
        request: { ...request, pid: gateway.pid, connections: CONNECTIONS },
      });
    }
    const figures = await interleave(cases, settings);
    return cases.map((each) => median(figures.get(each.name).map(({ cpu }) => cpu)));
  } finally {
    await Promise.all(gateways.map((gateway) => gateway.stop()));
  }
}

pinSelf();
const mocks = [
  await startPeer('upstream.mjs', [], LOAD_CORE),
  await startPeer('llm-upstream.mjs', [], LOAD_CORE),
];
const [http, llm] = mocks.map(({ port }) => `127.0.0.1:${port}`);
try {
  const lines = [];
  for (const name of only) lines.push({ name, micros: await measure(name, { http, llm }) });
  console.log(
    `CPU µs of a request, c=${CONNECTIONS}, median of ${settings.rounds} rounds of ${settings.seconds} s\n`,
  );
  console.log(
    table(
      ['', ...counts.map((count) => count.toLocaleString('en-US'))],
      lines.map(({ name, micros }) => [name, ...micros.map((each) => each.toFixed(0))]),
    ),
  );
  if (svg !== undefined) writeFileSync(svg, curves(counts, lines));
} finally {
  await Promise.all(mocks.map((mock) => mock.stop()));
}
