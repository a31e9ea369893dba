// Runs a script on the Node of devDependencies, after installing it when that has not been done. This file runs
// on whatever Node the machine has (20 or newer) and uses nothing but Node itself.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const modules = join(root, 'node_modules');
const node = join(modules, 'node', 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
const stamp = join(modules, '.installed-from');
const lock = createHash('sha256')
  .update(readFileSync(join(root, 'package-lock.json')))
  .digest('hex');

if (!existsSync(node) || !existsSync(stamp) || readFileSync(stamp, 'utf8') !== lock) {
  process.stderr.write('installing dependencies (npm ci) …\n');
  const npm = process.env.npm_execpath;
  const [command, args] = npm === undefined ? ['npm', ['ci']] : [process.execPath, [npm, 'ci']];
  // The scripts that call this run on the newest Node; npm's warnings about the Node it runs on itself are noise.
  const installed = spawnSync(command, [...args, '--loglevel=error'], { cwd: root, stdio: ['ignore', 2, 2] });
  if (installed.status !== 0) process.exit(installed.status ?? 1);
  writeFileSync(stamp, lock);
}

const [script, ...args] = process.argv.slice(2);
const child = spawn(node, [join(root, script), ...args], {
  stdio: 'inherit',
  cwd: root,
  env: { ...process.env, PATH: [join(modules, '.bin'), dirname(node), process.env.PATH].join(delimiter) },
});
// The terminal sends Ctrl-C to both; the child decides when it is done.
for (const signal of ['SIGINT', 'SIGTERM'])
  process.on(signal, () => signal === 'SIGTERM' && child.kill(signal));
child.on('exit', (code, signal) => {
  process.exitCode = signal === null ? (code ?? 1) : 1;
});
