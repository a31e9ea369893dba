// Other gateways from the npm registry, installed when a benchmark first needs them.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './processes.mjs';

const folder = join(root, 'node_modules/.cache/bench-peers');

/** Exact versions, so that figures of different days compare the same programs. */
const PEERS = {
  supergateway: { version: '4.0.0', script: 'dist/index.js' },
  '@portkey-ai/gateway': { version: '1.15.2', script: 'build/start-server.js' },
};

/** The script that starts a peer. Undefined if it cannot be installed, which is reported: its row is missing then. */
export function peerScript(name) {
  const { version, script } = PEERS[name];
  const place = join(folder, name.replace('/', '+'));
  const file = join(place, 'node_modules', name, script);
  if (existsSync(file)) return file;
  console.error(`installing ${name}@${version} from the npm registry`);
  const { status } = spawnSync(
    'npm',
    ['install', '--prefix', place, '--ignore-scripts', '--no-audit', '--no-fund', `${name}@${version}`],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  if (status === 0 && existsSync(file)) return file;
  console.error(`SKIPPED: ${name} could not be installed; its row is missing below.`);
  return undefined;
}
