// Starts, pins and stops the processes of a benchmark.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));

/** The measured process runs alone on one core; generator, upstream and log reader share the other. */
export const SUT_CORE = 0;
export const LOAD_CORE = 1;

const startMs = 20_000;
const stopMs = 5_000;
const canPin = spawnSync('taskset', ['-V']).status === 0;
if (!canPin)
  console.error(
    'NOTE: taskset is not installed: nothing is pinned to a core, so the figures are unreliable.',
  );

const groups = new Set();
const folders = [];
// An interrupted benchmark must not leave servers behind, which are not in its process group.
process.on('exit', () => {
  for (const pid of groups) signalGroup(pid);
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130));

/** A folder for configuration files, removed when this process ends. */
export function scratchFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'agctl-bench-'));
  folders.push(folder);
  return folder;
}

/** A command line that runs on one core. */
export function pinned(core, command, args) {
  return canPin ? ['taskset', ['-c', String(core), command, ...args]] : [command, args];
}

/** Pins this process too, because it reads the logs of what it starts. */
export function pinSelf(core = LOAD_CORE) {
  if (canPin) spawnSync('taskset', ['-pc', String(core), String(process.pid)]);
}

/** Whether a command is installed; prints that its row is missing if it is not. */
export function isInstalled(command, hint) {
  const found = spawnSync(command, ['-v'], { stdio: 'ignore' }).error === undefined;
  if (!found) console.error(`SKIPPED: ${command} is not installed (${hint}); its row is missing below.`);
  return found;
}

/**
 * Starts a command on a core. `ready` is a port to wait for, or a pattern that finds the port in its output. Resolves
 * to `{ pid, port, stop }`. Stdout is read and discarded, as a log collector would; `onStderr` gets what it logs.
 */
export async function start(command, args, { core = SUT_CORE, ready, env = {}, cwd, onStderr } = {}) {
  const child = spawn(...pinned(core, command, args), {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
    cwd,
    // A process group of its own, so that its children (a shell, a server) end with it.
    detached: true,
  });
  groups.add(child.pid);
  let printed = '';
  const keep = (chunk) => {
    // The banner has a line for each route.
    if (printed.length < 1_000_000) printed += chunk;
  };
  child.stdout.on('data', ready instanceof RegExp ? keep : () => undefined);
  child.stderr.on('data', keep);
  if (onStderr !== undefined) child.stderr.setEncoding('utf8').on('data', onStderr);
  const gone = once(child, 'exit');
  let port = ready;
  const deadline = performance.now() + startMs;
  const isReady = async () => {
    if (ready instanceof RegExp) port = Number(ready.exec(printed)?.[1] ?? Number.NaN);
    return Number.isInteger(port) && (await accepts(port));
  };
  while (!(await isReady())) {
    if (child.exitCode !== null || performance.now() > deadline) {
      signalGroup(child.pid);
      throw new Error(`${command} ${args.join(' ')} did not start:\n${printed}`);
    }
    await delay(20);
  }
  return { pid: child.pid, port, stop: () => stop(child, gone) };
}

/** Resident memory of a process in MiB. */
export function residentMiB(pid) {
  const [, kib] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) / 1024;
}

async function stop(child, gone) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  const late = setTimeout(() => signalGroup(child.pid), stopMs);
  await gone;
  clearTimeout(late);
  signalGroup(child.pid);
  groups.delete(child.pid);
}

function signalGroup(pid) {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // No process is left in it.
  }
}

function accepts(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const finish = (answer) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('connect', () => finish(true)).once('error', () => finish(false));
  });
}

/** A free port, for programs that cannot report which one they chose. */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** Starts a gateway on a configuration file that has `port: 0`. `nodeArgs` go before the program; `options` are `start`'s. */
export function startGateway(bin, file, nodeArgs = [], options = {}) {
  return start(process.execPath, [...nodeArgs, bin, 'serve', '-f', file], {
    ...options,
    // The second form is a log in JSON.
    ready: /(?:^ {2}gateway \S+ +|"gateways":"[^"=]+=)https?:\/\/[^:"]+:(\d+)[\s\S]*?(?:^ready in|"ms":)/m,
  });
}

/** Starts one of the small programs in `bench/peers`, which print `listening on <port>`. */
export function startPeer(name, args, core) {
  const script = fileURLToPath(new URL(`../peers/${name}`, import.meta.url));
  return start(process.execPath, [script, ...args], { core, ready: /listening on (\d+)/ });
}

/** The gateways to measure: `--bin NAME=PATH`, several to compare builds. Default: the one of this checkout. */
export async function gatewayBuilds(bins = []) {
  if (bins.length > 0)
    return bins.map((bin) => (bin.includes('=') ? bin.split('=') : [bins.length > 1 ? bin : 'agctl', bin]));
  await warnIfStale();
  return [['agctl', join(root, 'bin/agctl.js')]];
}

async function warnIfStale() {
  const newest = async (folder) => {
    const names = await readdir(join(root, folder), { recursive: true }).catch(() => []);
    const times = names
      .filter((name) => /\.[jt]s$/.test(name))
      .map((name) => statSync(join(root, folder, name)).mtimeMs);
    return Math.max(0, ...times);
  };
  const [built, written] = await Promise.all([newest('dist'), newest('src')]);
  if (built === 0) throw new Error('nothing is built yet: run `npm run build` first');
  if (built < written)
    console.error('NOTE: src is newer than dist: this measures the last build (`npm run build`).');
}
