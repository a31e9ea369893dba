// Runs a script with the Node.js of devDependencies, and installs it first if necessary. This file runs on any
// installed Node.js (20 or newer) and uses nothing else.
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
  // The scripts run on the newest Node.js; npm's warnings about the Node.js it runs on itself are irrelevant.
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
