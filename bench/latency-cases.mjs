// What `bench tail` and `bench all` ask, of which gateways and relays, and the rows of their tables.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { peerScript } from './harness/npm-peers.mjs';
import {
  freePort,
  isInstalled,
  LOAD_CORE,
  residentMiB,
  start,
  startGateway,
  startPeer,
} from './harness/processes.mjs';
import { median, ratio } from './harness/rounds.mjs';
import { GET, gatewayConfig, haproxyArgs, nginxArgs } from './http-cases.mjs';
import { llmConfig, nginxArgs as llmNginxArgs, portkeyHeaders, requestOf, WORKLOADS } from './llm-cases.mjs';
import { mcpConfig, mcpRequest, openSession, stdioServer } from './mcp-case.mjs';
import { startUpstreamGateway } from './upstream-gateway.mjs';

const RELAY = 'bare relay';

const at = (path, request) => async (_name, port) => ({ ...request, url: `http://127.0.0.1:${port}${path}` });

async function startInstalled(name, argsOf, folder, upstream) {
  if (!isInstalled(name, `apt-get install ${name}`)) return undefined;
  const port = await freePort();
  return start(name, argsOf(folder, port, upstream), { ready: port });
}

async function startPortkey(upstream) {
  const script = peerScript('@portkey-ai/gateway');
  if (script === undefined) return undefined;
  const port = await freePort();
  // Portkey was written for older versions of Node.js.
  const node = process.env.AGCTL_BENCH_PEER_NODE ?? process.execPath;
  const started = await start(node, [script, '--headless', `--port=${port}`], { ready: port });
  return { ...started, headers: portkeyHeaders(upstream) };
}

/** Others by name: each resolves to a process, or to undefined if it is not here. */
const PEERS = {
  get: {
    nginx: (folder, upstream) => startInstalled('nginx', nginxArgs, folder, upstream),
    haproxy: (folder, upstream) => startInstalled('haproxy', haproxyArgs, folder, upstream),
    upstream: (folder, upstream) => startUpstreamGateway(folder, 'get', upstream),
  },
  chat: {
    nginx: (folder, upstream) => startInstalled('nginx', llmNginxArgs, folder, upstream),
    Portkey: (_folder, upstream) => startPortkey(upstream),
    upstream: (folder, upstream) => startUpstreamGateway(folder, 'chat', upstream),
  },
  tools: { upstream: (folder) => startUpstreamGateway(folder, 'tools') },
};

const chat = (workload, peers = PEERS.chat) => ({
  mock: 'llm-upstream.mjs',
  relay: 'llm-relay.mjs',
  config: llmConfig,
  // The relay cannot translate: it is asked what its provider understands.
  request: (name, port) => {
    const own = requestOf(name === RELAY && workload.plain ? WORKLOADS[workload.plain] : workload);
    return at(own.path, own)(name, port);
  },
  peers,
});

/** What is asked, of which relay and others, and how the gateway is configured with the address of the upstream. */
export const CASES = {
  get: {
    mock: 'upstream.mjs',
    relay: 'bare-relay.mjs',
    config: (upstream) => gatewayConfig(upstream, []),
    request: at('/v1/items', GET),
    peers: PEERS.get,
  },
  chat: chat(WORKLOADS.small),
  stream: chat(WORKLOADS.stream),
  translated: chat(WORKLOADS.translated, {}),
  tools: {
    relay: 'mcp-relay.mjs',
    config: () => mcpConfig(),
    request: async (name, port) => mcpRequest(await openSession(name, port, name === RELAY ? '/' : '/mcp')),
    peers: PEERS.tools,
  },
};

/** A configuration without the admin server. */
export const withoutAdmin = (config) => ({ ...config, config: { ...config.config, adminAddr: 'off' } });

/** Whether another gateway answers this; one that answers anything else is left out. */
async function works({ name, request }) {
  const response = await fetch(request.url, request);
  const text = await response.text();
  const isRight = response.status === 200 && text.includes(request.mustContain ?? '');
  if (!isRight) console.error(`SKIPPED: ${name} cannot do this: ${response.status} ${text.slice(0, 200)}`);
  return isRight;
}

/**
 * Starts the relay, the gateways and, with `peers`, others for one case, measures, and stops them: memory is that of one kind
 * of load. `gateways`: `[name, program, change of the configuration]`. `start`: options of the gateways' processes.
 */
export async function withCase(
  name,
  { folder, gateways, connections, nodeArgs = [], peers, ...more },
  measure,
) {
  const { mock, relay, config, request, peers: others } = CASES[name];
  const running = [];
  const keep = async (starting) => {
    running.push(await starting);
    return running.at(-1);
  };
  try {
    const upstream =
      mock === undefined ? undefined : `127.0.0.1:${(await keep(startPeer(mock, [], LOAD_CORE))).port}`;
    const target = upstream === undefined ? stdioServer : `http://${upstream}`;
    const started = [[RELAY, await keep(startPeer(relay, [target], undefined))]];
    for (const [build, bin, change = (same) => same] of gateways) {
      const file = join(folder, `${name}-${running.length}.yaml`);
      writeFileSync(file, JSON.stringify(change(config(upstream))));
      started.push([build, await keep(startGateway(bin, file, nodeArgs, more.start))]);
    }
    for (const [peer, startIt] of Object.entries(peers ? others : {})) {
      const process = await startIt(folder, upstream);
      if (process !== undefined) started.push([peer, await keep(process)]);
    }
    const cases = [];
    for (const [caseName, { port, pid, headers }] of started) {
      const asked = await request(caseName, port);
      const entry = {
        name: caseName,
        idle: residentMiB(pid),
        request: { ...asked, headers: { ...asked.headers, ...headers }, pid, connections },
      };
      if (!(caseName in others) || (await works(entry))) cases.push(entry);
    }
    return await measure(cases);
  } finally {
    await Promise.all(running.map((process) => process.stop()));
  }
}

/** Of a stream the time between two reads with events, of everything else the time of a request. */
const latencies = (run) => run.gap ?? run;

export const COLUMNS = [
  '',
  'rate',
  'capacity',
  'p50 ms',
  'p99 ms',
  'p99',
  'p99.9 ms',
  'max ms',
  'idle MiB',
  'RSS MiB',
];

/** A row of `COLUMNS` for each case; the first one is the reference of `×`. Their processes must still run. */
export function rowsOf(name, connections, cases, figures) {
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
