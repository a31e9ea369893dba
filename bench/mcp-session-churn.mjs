// npm run bench mcp-churn -- [--mode stdio,shared,...] [--sessions 10000] [--concurrency 16] [--bin PATH]
// Opens sessions on a gateway, opens a GET stream and calls a tool in each, and deletes them. Then counts what the gateway
// still holds. Fails if a call failed, or if a child process, session, descriptor, timer or more than 2 MiB are left.
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { collectGarbage, countTimers } from './harness/inside.mjs';
import { residentMiB } from './harness/processes.mjs';
import { table } from './harness/report.mjs';
import { Clients, memoryOf, repeat, startMcpGateway } from './mcp-gateways.mjs';

/** The access log and the event loop may each hold a descriptor more or less at the time of counting. */
const FD_TOLERANCE = 2;
/** Timers of Node.js itself for a connection of the admin server and for the cached date come and go. */
const TIMER_TOLERANCE = 3;
/** Caches fill and code is compiled further while the sessions run, which 2,000 sessions do as well as 10,000. */
const HEAP_TOLERANCE = 2 * 2 ** 20;
/** Idle sessions end after 10 s, which is checked every 30 s, and connections to servers a few seconds later. */
const QUIET_TIMEOUT = 60_000;

async function useSession(clients, tool) {
  const session = await clients.open();
  const stream = await clients.listen(session);
  await clients.call(tool, session);
  await clients.end(session);
  await stream.ended;
}

/** A request of a client of revision 2026-07-28 that is not known yet, and a stream that it leaves. */
async function useCaller(clients, tool, index) {
  const token = `caller-${index}`;
  const stream = await clients.listenModern(token, 1);
  await clients.callModern(tool, token);
  stream.leave();
  await stream.ended;
}

const MODES = {
  stdio: { server: 'stdio', use: useSession },
  shared: { server: 'shared', use: useSession },
  http: { server: 'http', use: useSession },
  sse: { server: 'sse', use: useSession },
  openapi: { server: 'openapi', use: useSession },
  stateless: {
    server: 'http',
    backend: { statefulMode: 'stateless' },
    use: (clients, tool) => clients.call(tool),
  },
  modern: { server: 'shared', use: useCaller },
  // Sessions of callers live for 10 to 40 s, and undici keeps an object for each of as many connections as there were at
  // once: that many must be reached before the count.
  'modern-http': { server: 'http', use: useCaller, warmUp: 1 },
};

const { values } = parseArgs({
  options: {
    mode: { type: 'string', default: Object.keys(MODES).join() },
    sessions: { type: 'string', default: '10000' },
    concurrency: { type: 'string', default: '16' },
    bin: { type: 'string' },
  },
});
const total = Number(values.sessions);
const concurrency = Number(values.concurrency);
const modes = values.mode.split(',');
for (const mode of modes)
  if (!Object.hasOwn(MODES, mode)) throw new Error(`--mode must be some of ${Object.keys(MODES)}`);

/** Number of child processes, including zombies and the watchdog shell. */
const children = (pid) =>
  readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').trim().split(' ').filter(Boolean),
  ).length;

async function holdings(gateway) {
  const { sessions, connections } = await memoryOf(gateway);
  const fds = readdirSync(`/proc/${gateway.pid}/fd`).length - connections;
  return { children: children(gateway.pid), sessions, fds };
}

/**
 * What the gateway holds once that has not changed for 12 s: idle connections to servers are kept for less, and the timer of
 * `AbortSignal.timeout`, which cannot be cancelled, runs for up to 10 s.
 */
async function quiet(gateway, isDone = () => true) {
  const deadline = performance.now() + QUIET_TIMEOUT;
  let since = performance.now();
  let last = '';
  for (;;) {
    const held = await holdings(gateway);
    const now = JSON.stringify(held);
    if (now !== last) since = performance.now();
    last = now;
    const isSteady = performance.now() - since > 12_000 && held.sessions === 0;
    if ((isSteady && isDone(held)) || performance.now() > deadline) break;
    await delay(200);
  }
  const timers = await countTimers(gateway.inspectPort);
  await collectGarbage(gateway.inspectPort);
  const { heap_used, external } = await memoryOf(gateway);
  return { ...(await holdings(gateway)), timers, heap: heap_used + external, rss: residentMiB(gateway.pid) };
}

async function measure(mode) {
  const { server, backend, use, warmUp: share = 0.1 } = MODES[mode];
  const gateway = await startMcpGateway(server, { bin: values.bin, backend });
  const churn = async (count, first = 0) => {
    const clients = new Clients(gateway, 2 * concurrency);
    const errors = await repeat(count, concurrency, (index) => use(clients, gateway.tool, first + index));
    await clients.close();
    return errors;
  };
  try {
    // Code, pools and caches that are filled once must not count as a leak.
    const warmUp = Math.ceil(total * share);
    const [error] = await churn(warmUp);
    if (error !== undefined) throw new Error(`${mode}: ${error}`);
    const before = await quiet(gateway);
    const start = performance.now();
    const errors = await churn(total, warmUp);
    const seconds = (performance.now() - start) / 1000;
    const peak = residentMiB(gateway.pid);
    const fdsFit = ({ fds }) => fds <= before.fds + FD_TOLERANCE;
    const after = await quiet(gateway, fdsFit);
    const isClean =
      errors.length + after.children - before.children + after.sessions === 0 &&
      fdsFit(after) &&
      after.timers <= before.timers + TIMER_TOLERANCE &&
      after.heap - before.heap < HEAP_TOLERANCE;
    if (!isClean) process.exitCode = 1;
    if (errors.length > 0) console.error(`${mode}: ${errors.length} errors, such as ${errors[0]}`);
    const both = (figure) => `${figure(before)} → ${figure(after)}`;
    return [
      mode,
      (total / seconds).toFixed(0),
      String(errors.length),
      both(({ children }) => children),
      String(after.sessions),
      both(({ fds }) => fds),
      both(({ timers }) => timers),
      both(({ heap }) => (heap / 2 ** 20).toFixed(2)),
      `${both(({ rss }) => rss.toFixed(0))} (${peak.toFixed(0)} at the end)`,
      isClean ? 'yes' : 'NO',
    ];
  } finally {
    await gateway.stop();
  }
}

const header = [
  '',
  'per s',
  'errors',
  'children',
  'sessions left',
  'fds',
  'timers',
  'heap MiB',
  'RSS MiB',
  'clean',
];
const rows = [];
for (const mode of modes) {
  rows.push(await measure(mode));
  console.error(rows.at(-1).join('  '));
}
console.log(
  `${total} sessions or callers each, ${concurrency} at a time; before → after, the heap after garbage collection\n`,
);
console.log(table(header, rows));
