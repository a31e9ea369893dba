import { spawn, spawnSync } from 'node:child_process';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Runs a command in the checkout and ends this script with its exit code when it fails. */
export function run(command, args, env = {}) {
  const started = performance.now();
  const { status, error } = spawnSync(command, args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...env },
  });
  if (error) throw error;
  say(command, args, status, started);
  if (status !== 0) process.exit(status ?? 1);
}

/**
 * Runs commands at the same time, each an array of its name and arguments. The output of each appears when it has
 * ended. When all have, this script ends with the exit code of one that failed, if any did.
 */
export async function runTogether(...commands) {
  const statuses = await Promise.all(commands.map(([command, ...args]) => collect(command, args)));
  const failed = statuses.find((status) => status !== 0);
  if (failed !== undefined) process.exit(failed ?? 1);
}

function collect(command, args) {
  const started = performance.now();
  const color = process.stderr.isTTY ? { FORCE_COLOR: '1' } : {};
  const child = spawn(command, args, {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...color },
  });
  const output = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => output.push(chunk));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (status) => {
      process.stderr.write(Buffer.concat(output));
      say(command, args, status, started);
      resolve(status);
    });
  });
}

function say(command, args, status, started) {
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  process.stderr.write(`${status === 0 ? 'ok' : 'FAILED'}  ${command} ${args.join(' ')}  (${seconds} s)\n`);
}
