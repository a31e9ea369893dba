// kill -9 of workers: which requests fail, and how soon there is another worker.
import { setTimeout as delay } from 'node:timers/promises';
import { table } from '../harness/report.mjs';
import { median } from '../harness/rounds.mjs';
import { gatewayConfig } from '../http-cases.mjs';
import { ScaledGateway } from './gateways.mjs';
import { Senders } from './senders.mjs';

const ENDED = /a worker has ended.*\bworker=(\d+)/;
const REPLACED = /a worker was replaced/;
/** Longer than a worker must live to be replaced at once when it ends. */
const BETWEEN_KILLS = 6_000;

/** Resolves to `{ text, isOk }`: not ok if a request failed that was not on a connection of the killed worker. */
export async function faults({ bin, folder, nginx, connections, idleKills }) {
  const config = gatewayConfig(`127.0.0.1:${nginx.port}`, []);
  const gateway = await ScaledGateway.start({ bin, folder, config, workers: 2 });
  try {
    const idle = [];
    for (let count = 0; count < idleKills; count += 1) {
      await delay(BETWEEN_KILLS);
      idle.push((await killOldest(gateway)).replaced);
    }
    const senders = new Senders(gateway.origin, connections);
    const rows = [];
    let isOk = true;
    for (let count = 0; count < 2; count += 1) {
      await delay(BETWEEN_KILLS);
      const connectionsOf = await gateway.connections();
      const before = senders.failed;
      const { worker, ended, replaced } = await killOldest(gateway);
      await delay(1_000);
      const failed = senders.failed - before;
      const own = connectionsOf[worker];
      isOk &&= failed <= own;
      rows.push([worker, String(own), String(failed), ended.toFixed(0), replaced.toFixed(0)]);
    }
    await senders.stop();
    isOk &&= Object.keys(senders.outcomes).every((each) => each === '200' || each === 'ECONNRESET');
    const text = [
      `kill -9 of each worker in turn, ${connections} clients, ${senders.finished} requests: ${JSON.stringify(senders.outcomes)}${isOk ? '' : ': NOT OK'}`,
      '',
      table(['', 'its connections', 'failed requests', 'noticed after ms', 'replaced after ms'], rows),
      '',
      ...(idle.length === 0
        ? []
        : [
            `without load, ${idle.length} kills: replaced after ${median(idle).toFixed(0)} ms ` +
              `(${Math.min(...idle).toFixed(0)}–${Math.max(...idle).toFixed(0)})`,
          ]),
    ].join('\n');
    return { text, isOk };
  } finally {
    await gateway.stop();
  }
}

/**
 * Kills the worker that runs longest, so each in turn. Resolves to its name, and the times in ms until the log said that it
 * has ended, and that another one runs.
 */
async function killOldest(gateway) {
  const logged = Promise.all([gateway.logged(ENDED), gateway.logged(REPLACED)]);
  const killed = performance.now();
  process.kill(gateway.workerPids[0], 'SIGKILL');
  const [ended, replaced] = await logged;
  return { worker: `worker ${ended[1]}`, ended: ended.at - killed, replaced: replaced.at - killed };
}
