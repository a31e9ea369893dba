// What decision 0044 compares: how connections can get from one port to several event loops of Node.js.
import { readdirSync } from 'node:fs';
import { cpuMicros, descendants } from '../harness/cpu.mjs';
import { residentMiB, startPeer } from '../harness/processes.mjs';
import { table } from '../harness/report.mjs';
import { median } from '../harness/rounds.mjs';
import { CORES } from './cores.mjs';
import { wrk } from './wrk.mjs';

const KINDS = {
  single: 'one process',
  processes: '2 processes that get sockets over IPC',
  cluster: '2 processes of node:cluster',
  threads: '2 worker threads, `reusePort`',
};
const WARMUP = 2;

/** Resolves to `{ text, isOk }`. */
export async function processKinds({ rounds, seconds, connections }) {
  const sides = [];
  try {
    for (const kind of Object.keys(KINDS)) {
      const server = await startPeer('socket-kinds.mjs', [kind], CORES);
      const url = `http://127.0.0.1:${server.port}/`;
      sides.push({
        kind,
        server,
        loads: {
          kept: { url, connections },
          fresh: { url, connections, headers: { connection: 'close' } },
        },
        kept: [],
        fresh: [],
      });
    }
    for (let round = 0; round < rounds; round += 1) {
      for (let turn = 0; turn < sides.length; turn += 1) {
        const side = sides[(turn + round) % sides.length];
        for (const load of ['kept', 'fresh']) {
          await wrk(side.loads[load], WARMUP);
          side[load].push(await measure(side, load, seconds));
        }
      }
    }
    const header = [
      '',
      'req/s',
      'CPU µs',
      'conn/s',
      'CPU µs per connection',
      'RSS MiB',
      'processes',
      'threads',
    ];
    const rows = sides.map(({ kind, server: { pid }, kept, fresh }) => {
      const middle = (runs, key) => median(runs.map((run) => run[key]));
      const pids = [pid, ...descendants(pid)];
      const resident = pids.reduce((sum, each) => sum + residentMiB(each), 0);
      const threads = pids.reduce((sum, each) => sum + readdirSync(`/proc/${each}/task`).length, 0);
      return [
        KINDS[kind],
        middle(kept, 'rate').toFixed(0),
        middle(kept, 'cpu').toFixed(1),
        middle(fresh, 'rate').toFixed(0),
        middle(fresh, 'cpu').toFixed(1),
        resident.toFixed(0),
        String(pids.length),
        String(threads),
      ];
    });
    const title = 'bare servers on node:http: requests on kept connections, and one per connection';
    return { text: `${title}\n\n${table(header, rows)}`, isOk: true };
  } finally {
    for (const { server } of sides) await server.stop();
  }
}

async function measure({ server: { pid }, loads }, load, seconds) {
  const spent = () => [pid, ...descendants(pid)].reduce((sum, each) => sum + cpuMicros(each), 0);
  const before = spent();
  const { completed, rate } = await wrk(loads[load], seconds);
  return { rate, cpu: (spent() - before) / completed };
}
