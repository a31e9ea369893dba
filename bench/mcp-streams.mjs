// npm run bench mcp-streams -- [--streams 500] [--many 5000] [--hold 600] [--bin PATH] [--node-arg=FLAG ...]
// The memory of idle streams: of a GET stream in a session of its own, of a further response stream in the same session, and of
// a `subscriptions/listen` stream of revision 2026-07-28. Then how the resident memory falls after many streams have ended;
// with --hold they stay idle for so many seconds before, and the run fails if one ends or gets no heartbeat.
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { collectGarbage } from './harness/inside.mjs';
import { residentMiB } from './harness/processes.mjs';
import { table } from './harness/report.mjs';
import { Clients, memoryOf, repeat, startMcpGateway } from './mcp-gateways.mjs';

/** Fewer than `LIMITS.inFlightPerSession`. */
const CALLS_PER_SESSION = 250;
const CONCURRENCY = 16;
/** Two heartbeats of 15 s, and time for a busy machine. */
const SILENCE_MS = 35_000;

const { values } = parseArgs({
  options: {
    streams: { type: 'string', default: '500' },
    many: { type: 'string', default: '5000' },
    hold: { type: 'string', default: '0' },
    bin: { type: 'string' },
    'node-arg': { type: 'string', multiple: true, default: [] },
  },
});

/** Each opens stream `index` and resolves to a function that ends it. */
const KINDS = {
  'session with a GET stream, shared stdio': { server: 'shared', open: openSession },
  'session with a GET stream, HTTP': { server: 'http', open: openSession },
  'response stream in the same session': { server: 'shared', open: openCall },
  'subscriptions/listen of the same caller': { server: 'shared', open: openListen },
};

async function openSession(clients) {
  const session = await clients.open();
  const stream = await clients.listen(session);
  const end = async () => {
    await clients.end(session);
    await stream.ended;
  };
  return Object.assign(end, { stream });
}

async function openCall(clients, index, sessions) {
  const group = Math.floor(index / CALLS_PER_SESSION);
  sessions[group] ??= clients.open();
  const stream = await clients.hold(await sessions[group], index);
  await stream.first;
  return async () => {
    stream.leave();
    await stream.ended;
  };
}

async function openListen(clients, index) {
  const stream = await clients.listenModern(`caller-${Math.floor(index / CALLS_PER_SESSION)}`, index);
  return async () => {
    stream.leave();
    await stream.ended;
  };
}

async function state({ inspectPort, admin, pid }) {
  await collectGarbage(inspectPort);
  await delay(500);
  await collectGarbage(inspectPort);
  const { heap_used, heap_total, external } = await memoryOf({ admin });
  return {
    rss: residentMiB(pid),
    heap: heap_used / 2 ** 20,
    total: heap_total / 2 ** 20,
    external: external / 2 ** 20,
  };
}

/** Opens `count` streams. Resolves to the functions that end them. */
async function openAll(clients, open, first, count, sessions) {
  const ends = [];
  const [error] = await repeat(count, CONCURRENCY, async (index) => {
    ends.push(await open(clients, first + index, sessions));
  });
  if (error !== undefined) throw new Error(error);
  return ends;
}

const endAll = (ends) => repeat(ends.length, CONCURRENCY, (index) => ends[index]());

async function costs([name, { server, open }]) {
  const count = Number(values.streams);
  const gateway = await startMcpGateway(server, { bin: values.bin, nodeArgs: values['node-arg'] });
  const clients = new Clients(gateway, null);
  try {
    const sessions = [];
    // Code and caches must not count as the memory of streams, nor the sessions that the streams share.
    await openAll(clients, open, 0, 2 * count, sessions).then(endAll);
    const first = await openAll(clients, open, 2 * count, count, sessions);
    const before = await state(gateway);
    const more = await openAll(clients, open, 3 * count, count, sessions);
    const after = await state(gateway);
    await endAll([...first, ...more]);
    const each = (figure) => (((after[figure] - before[figure]) * 1024) / count).toFixed(1);
    return [name, each('rss'), each('heap'), each('external')];
  } finally {
    await clients.close();
    await gateway.stop();
  }
}

/** Leaves the streams idle, and counts those that ended or were silent. */
async function hold(streams, seconds) {
  await delay(1_000 * seconds);
  const dropped = streams.filter(({ isOpen }) => !isOpen()).length;
  const silences = streams.map(({ longestSilence }) => longestSilence());
  const silent = silences.filter((ms) => ms > SILENCE_MS).length;
  const longest = (Math.max(...silences) / 1_000).toFixed(1);
  console.log(
    `${streams.length} streams, idle for ${seconds} s: ${dropped} ended, ${silent} silent (at most ${longest} s)\n`,
  );
  if (dropped + silent > 0) process.exitCode = 1;
}

/** Resident memory and heap before, with, and after many streams, without a forced collection until the last row. */
async function release() {
  const count = Number(values.many);
  const gateway = await startMcpGateway('shared', { bin: values.bin, nodeArgs: values['node-arg'] });
  const clients = new Clients(gateway, null);
  const rows = [];
  const add = async (when) => {
    const { heap_used, heap_total, external } = await memoryOf(gateway);
    const mib = [
      residentMiB(gateway.pid),
      ...[heap_total, heap_used, external].map((bytes) => bytes / 2 ** 20),
    ];
    rows.push([when, ...mib.map((figure) => figure.toFixed(0))]);
    console.error(rows.at(-1).join('  '));
  };
  try {
    await openAll(clients, openSession, 0, 200, []).then(endAll);
    await add('before');
    const ends = await openAll(clients, openSession, 0, count, []);
    await add(`${count} streams`);
    if (Number(values.hold) > 0) {
      await hold(
        ends.map(({ stream }) => stream),
        Number(values.hold),
      );
      await add(`${values.hold} s later`);
    }
    await endAll(ends);
    await add('ended');
    for (const seconds of [10, 30, 60, 90, 120]) {
      await delay(1_000 * (seconds - (rows.seconds ?? 0)));
      rows.seconds = seconds;
      await add(`${seconds} s later`);
    }
    await collectGarbage(gateway.inspectPort);
    await delay(2_000);
    await add('after garbage collection');
  } finally {
    await clients.close();
    await gateway.stop();
  }
  return rows;
}

if (Number(values.streams) > 0) {
  const rows = [];
  for (const kind of Object.entries(KINDS)) {
    rows.push(await costs(kind));
    console.error(rows.at(-1).join('  '));
  }
  console.log(`KiB for each of ${values.streams} more, after garbage collection\n`);
  console.log(table(['', 'RSS', 'heap', 'external'], rows));
}
if (Number(values.many) > 0) {
  const rows = await release();
  console.log('\nMiB before, with and after many sessions with a GET stream each\n');
  console.log(table(['', 'RSS', 'heap total', 'heap used', 'external'], rows));
}
