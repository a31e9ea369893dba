// `npm run bench` lists the benchmarks, `npm run bench <name> -- [options]` runs one.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Each runs in a process of its own, so that none inherits the heap or the compiled code of another. */
const BENCHMARKS = {
  all: ['all.mjs', 'everything that is compared with others, in about 10 minutes'],
  http: ['http.mjs', 'plain proxying and policies, compared with a bare relay, nginx and haproxy'],
  policies: ['policies.mjs', 'what each policy costs, without sockets'],
  observe: ['observe.mjs', 'what the access log, metrics and traces cost'],
  mcp: ['mcp.mjs', 'tools/call over stdio, compared with a bare relay and supergateway'],
  llm: ['llm.mjs', 'chat completions and streams, compared with a bare relay, Portkey and nginx'],
  'llm-streams': ['llm-streams.mjs', 'many streams at the pace of a model, each event checked'],
  profile: ['profile.mjs', 'where the gateway spends its time (select a workload with --case)'],
  tail: [
    'tail.mjs',
    'the slowest requests, memory, and what stops the event loop, compared with a bare relay',
  ],
  growth: [
    'growth.mjs',
    'the CPU time of a request with 1 to 10,000 routes, keys, models, tools and sessions',
  ],
  start: ['start.mjs', 'CPU time, duration and memory of commands that start'],
  cli: ['cli.mjs', 'what agctl proxy config costs for a dump of 20 MB'],
  cel: ['cel.mjs', 'what expressions cost'],
  auth: ['auth.mjs', 'what token validation costs, and whether our results agree with those of jose'],
  'memory-retrieval': [
    'memory-retrieval.mjs',
    'whether search finds the right page, and nothing for unrelated questions',
  ],
  'memory-turns': [
    'memory-turns.mjs',
    'whether a question finds the turn of a conversation that answers it, the latest value first',
  ],
  trace: ['trace.mjs', 'the cost of tracing requests, and of not tracing them'],
  web: ['web.mjs', 'what the web pages load, how soon they can be used, and the frame rate of the graph'],
  'tool-search': ['tool-search.mjs', 'what a search over a thousand tools costs'],
  'mcp-churn': ['mcp-session-churn.mjs', 'resources that many MCP sessions leave behind'],
  'mcp-streams': ['mcp-streams.mjs', 'the memory of idle MCP streams, and after they have ended'],
  scale: [
    'scale.mjs',
    'two workers compared with one process; connections, a limit and kill -9 with workers',
  ],
  record: ['record.mjs', 'storing and searching a million recorded requests (-- --postgres URL)'],
  shared: ['shared.mjs', 'what limits and sessions in Redis cost: the constants of docs/scale.md'],
  library: ['library.mjs', 'a gateway in the process of a program: its port compared with `handle`'],
  reload: ['reload.mjs', 'reloads under load: no lost request, no leak'],
  memory: ['memory.mjs', 'the memory service over stdio, compared with server-memory'],
  'memory-store': [
    'memory-store.mjs',
    'the memory stores: search, durable writes, graph (-- --postgres URL)',
  ],
  'memory-kill': ['memory-kill.mjs', 'kill -9 of a process that writes to memory stores, 10,000 crashes'],
};

const [name, ...args] = process.argv.slice(2);
const chosen = Object.hasOwn(BENCHMARKS, name ?? '') ? BENCHMARKS[name] : undefined;
if (chosen === undefined) {
  const width = Math.max(...Object.keys(BENCHMARKS).map((key) => key.length));
  const list = Object.entries(BENCHMARKS).map(([key, [, what]]) => `  ${key.padEnd(width)}  ${what}`);
  process.stdout.write(`npm run bench <name> [-- options]\n\n${list.join('\n')}\n`);
  process.exitCode = name === undefined ? 0 : 2;
} else {
  const script = fileURLToPath(new URL(chosen[0], import.meta.url));
  const child = spawn(process.execPath, [script, ...args], { stdio: 'inherit' });
  child.on('exit', (code, signal) => {
    process.exitCode = signal === null ? (code ?? 1) : 1;
  });
}
