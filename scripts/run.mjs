import { spawnSync } from 'node:child_process';
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
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  process.stderr.write(`${status === 0 ? 'ok' : 'FAILED'}  ${command} ${args.join(' ')}  (${seconds} s)\n`);
  if (status !== 0) process.exit(status ?? 1);
}
