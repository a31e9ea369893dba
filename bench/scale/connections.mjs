// Opens many connections, and counts how many each worker got.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { gatewayConfig } from '../http-cases.mjs';
import { ScaledGateway } from './gateways.mjs';

const BATCH = 200;
/** Descriptors that this process needs for other things. */
const RESERVED = 500;
/** Neither worker may have more. */
const MAX_SHARE = 0.6;
const REQUEST = 'GET / HTTP/1.1\r\nhost: bench\r\n\r\n';

/** Resolves to `{ text, isOk }`. */
export async function connections({ bin, folder, nginx, total }) {
  const config = gatewayConfig(`127.0.0.1:${nginx.port}`, []);
  const gateway = await ScaledGateway.start({ bin, folder, config, workers: 2 });
  try {
    const limit = Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]);
    const wave = Math.min(total, limit - RESERVED);
    const counts = {};
    const descriptors = gateway.descriptors();
    let failed = 0;
    let micros = 0;
    for (let opened = 0; opened < total; opened += wave) {
      const before = gateway.cpu().primary;
      const sockets = [];
      const count = Math.min(wave, total - opened);
      for (let batch = 0; batch < count; batch += BATCH) {
        const asked = Array.from({ length: Math.min(BATCH, count - batch) }, () => ask(gateway.port));
        sockets.push(...(await Promise.all(asked)));
      }
      micros += gateway.cpu().primary - before;
      failed += sockets.filter((socket) => socket === undefined).length;
      for (const [worker, used] of Object.entries(await gateway.connections()))
        counts[worker] = (counts[worker] ?? 0) + used;
      for (const socket of sockets) socket?.destroy();
      while (Object.values(await gateway.connections()).some((used) => used > 0)) await delay(100);
    }
    const sum = Object.values(counts).reduce((all, each) => all + each, 0);
    const shares = Object.entries(counts).map(
      ([worker, used]) => `${worker} ${used} (${Math.round((used / sum) * 100)} %)`,
    );
    const isOk = failed === 0 && sum === total && Math.max(...Object.values(counts)) <= MAX_SHARE * sum;
    const text = [
      `connections: ${total} opened, up to ${wave} at once, one request on each: ${failed} failed`,
      `  ${shares.join(', ')}: ${isOk ? 'within 60/40' : 'NOT OK'}`,
      `  CPU time of the primary process: ${(micros / total).toFixed(0)} µs per connection; ` +
        `its descriptors: ${descriptors} before, ${gateway.descriptors()} after`,
    ].join('\n');
    return { text, isOk };
  } finally {
    await gateway.stop();
  }
}

/** Opens a connection and sends a request on it. Resolves to the open connection, or to undefined if that failed. */
async function ask(port) {
  const socket = connect(port, '127.0.0.1').setNoDelay(true);
  try {
    await once(socket, 'connect');
    socket.write(REQUEST);
    const [reply] = await once(socket, 'data');
    if (!reply.toString('latin1').startsWith('HTTP/1.1 200 ')) throw new Error('refused');
    socket.on('error', () => undefined);
    return socket;
  } catch {
    socket.destroy();
    return undefined;
  }
}
