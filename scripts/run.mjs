import { spawn, spawnSync } from 'node:child_process';
import { constants, setPriority } from 'node:os';
import { root } from './install.mjs';

export { root };

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

/**
 * Runs a command as `run` does, and checks at the same time in the processor time that it leaves: it waits often, and
 * measures time. A check that fails ends the command.
 */
export async function runWithChecks([command, args, env], ...checks) {
  const started = performance.now();
  const child = spawn(command, args, { cwd: root, stdio: 'inherit', env: { ...process.env, ...env } });
  const ended = new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (status) => resolve(status));
  });
  const checked = checks.map(async ([check, ...rest]) => {
    const status = await collect(check, rest, constants.priority.PRIORITY_LOW);
    if (status !== 0) child.kill();
    return status;
  });
  const status = await ended;
  say(command, args, status, started);
  const failed = [status, ...(await Promise.all(checked))].find((each) => each !== 0);
  process.exitCode = failed === undefined ? 0 : (failed ?? 1);
}

/** Runs a command whose output appears when it has ended. Resolves to its exit code. */
export function collect(command, args, priority = constants.priority.PRIORITY_NORMAL) {
  const started = performance.now();
  const color = process.stderr.isTTY ? { FORCE_COLOR: '1' } : {};
  const child = spawn(command, args, {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...color },
  });
  if (priority !== constants.priority.PRIORITY_NORMAL && child.pid !== undefined)
    setPriority(child.pid, priority);
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
